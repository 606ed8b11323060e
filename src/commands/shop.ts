import { changeShop, showShop } from "../Auth/shopOperations.ts"
import type { Shop } from "../Domain/Shop.ts"
import { commandWith, printOperation } from "./operationCommand.ts"

const described = ({ accent, contact, currency, frameOrigins, logo, name, timezone, website }: Shop): string =>
  [
    `name     ${name ?? "none"}`,
    `accent   ${accent ?? "tilld's own"}`,
    `logo     ${logo ?? "none"}`,
    `website  ${website ?? "none"}`,
    `contact  ${contact ?? "none"}`,
    `days     of ${timezone ?? "UTC"}, worth in ${currency ?? "USD"}`,
    `frames   ${frameOrigins.length === 0 ? "no site may show the checkout in a frame" : frameOrigins.join(", ")}`
  ].join("\n")

/** `tilld accounts shop`: shows or changes how an account's checkout looks and its portal counts. */
export const shopCommand = commandWith(
  "shop",
  "Show how an account's checkout looks and its portal counts, or change what is given of it",
  changeShop.fields,
  (json, target) =>
    Object.keys(json).some((name) => name !== "account")
      ? printOperation(changeShop, { print: described }, json, target)
      : printOperation(showShop, { print: described }, json, target)
)
