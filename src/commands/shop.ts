import { Command, Options } from "@effect/cli"
import { Effect, Option, Schema } from "effect"
import { ChangeShop, ShowShop } from "../Control/shopRequests.ts"
import { Accent, FrameOrigin, LogoFile, mostFrameOrigins, type Shop, ShopName, Website } from "../Domain/Shop.ts"
import { common } from "./commonOptions.ts"
import { account, refuse } from "./options.ts"
import { printResult } from "./result.ts"

const none = "none"

interface Changed<A, I> {
  readonly schema: Schema.Schema<A, I>
  /** What the schema takes, in words. */
  readonly form: string
  readonly pseudo: string
  readonly about: string
}

/** An option that `none` takes away, and that is left as it is unless given. */
const changing = <A extends string, I>(option: string, { about, form, pseudo, schema }: Changed<A, I>) =>
  Options.text(option).pipe(
    Options.withPseudoName(pseudo),
    Options.withDescription(`${about}; ${none} takes it away`),
    Options.mapEffect((text) =>
      text === none
        ? Effect.succeed(null)
        : Option.match(Schema.decodeUnknownOption(schema)(text), {
            onNone: () => refuse(`--${option} must be ${form}`),
            onSome: (value): Effect.Effect<A | null> => Effect.succeed(value)
          })
    ),
    Options.optional
  )

const originForm = "an origin such as https://shop.example (http for localhost only), without a path"

const frameOrigins = Options.text("frame-origin").pipe(
  Options.withPseudoName("ORIGIN"),
  Options.withDescription(
    `A site that may show the checkout in a frame, up to ${mostFrameOrigins} times; none for no site`
  ),
  Options.repeated,
  Options.mapEffect((texts) => {
    if (texts.length === 1 && texts[0] === none) return Effect.succeed([])
    if (texts.length > mostFrameOrigins) return refuse(`--frame-origin may be given ${mostFrameOrigins} times`)
    const wrong = texts.find((text) => !Schema.is(FrameOrigin)(text))
    return wrong === undefined
      ? Effect.succeed(texts.length === 0 ? undefined : texts)
      : refuse(`--frame-origin must be ${originForm}, not ${JSON.stringify(wrong)}`)
  })
)

const described = ({ accent, frameOrigins, logo, name, website }: Shop): string =>
  [
    `name     ${name ?? "none"}`,
    `accent   ${accent ?? "tilld's own"}`,
    `logo     ${logo ?? "none"}`,
    `website  ${website ?? "none"}`,
    `frames   ${frameOrigins.length === 0 ? "no site may show the checkout in a frame" : frameOrigins.join(", ")}`
  ].join("\n")

const given = <Name extends string, A>(name: Name, value: Option.Option<A>) =>
  (Option.isSome(value) ? { [name]: value.value } : {}) as { readonly [N in Name]?: A }

/** `tilld accounts shop`: shows or changes how an account's checkout looks. */
export const shopCommand = Command.make(
  "shop",
  {
    ...common,
    account,
    name: changing("name", {
      schema: ShopName,
      form: "1 to 60 printable characters",
      pseudo: "TEXT",
      about: "What the shop is called"
    }),
    accent: changing("accent", {
      schema: Accent,
      form: "a colour such as #1f5fd1",
      pseudo: "COLOUR",
      about: "The colour of its buttons"
    }),
    logo: changing("logo", {
      schema: LogoFile,
      form: "the name of a .png, .svg, .webp or .jpg file, without a folder",
      pseudo: "FILE",
      about: "Its logo, a file in the folder checkout.logo_folder"
    }),
    website: changing("website", {
      schema: Website,
      form: "an https URL of at most 500 characters (http for localhost only)",
      pseudo: "URL",
      about: "Where customers find the shop, or its help"
    }),
    frameOrigins
  },
  ({ accent, account, frameOrigins, logo, name, website, ...options }) => {
    const change = {
      ...given("name", name),
      ...given("accent", accent),
      ...given("logo", logo),
      ...given("website", website),
      ...(frameOrigins === undefined ? {} : { frameOrigins })
    }
    return Object.keys(change).length === 0
      ? printResult(options, "accounts shop", new ShowShop({ account }), described)
      : printResult(options, "accounts shop", new ChangeShop({ account, ...change }), described)
  }
).pipe(Command.withDescription("Show how an account's checkout looks, or change what is given of it"))
