/** How the account's checkout looks, and which sites may show it in a frame. */
import { Effect, Either } from "effect"
import { carryOut } from "../../Auth/carryOut.ts"
import { decodeForm } from "../../Auth/inputText.ts"
import { shopOf } from "../../Auth/ShopsRepo.ts"
import { changeShop } from "../../Auth/shopOperations.ts"
import type { Accounts } from "../../Auth.ts"
import { Fiat } from "../../Domain/Currency.ts"
import { mostFrameOrigins, type Shop, shopTexts } from "../../Domain/Shop.ts"
import { pageReply, seeOther } from "../../Pages/reply.tsx"
import type { Settings } from "../../Settings.ts"
import { Reader, type Writer } from "../../Sql.ts"
import { blank, type FormState, PostForm, Select, TextArea, TextField } from "../components/Form.tsx"
import { Frame } from "../Frame.tsx"
import { afterDone, type PortalRoute, pathOf } from "../route.ts"
import { callerOf, type Viewer } from "../Viewer.ts"

const id = "shop"

const labels = {
  name: "Name",
  accent: "Accent colour",
  logo: "Logo",
  website: "Website",
  contact: "Contact",
  timezone: "Time zone",
  currency: "Currency",
  frameOrigins: "Sites that may frame it"
}

const formOf = ({ frameOrigins, ...texts }: Shop): FormState =>
  blank(id, { timezone: "UTC", currency: "USD", ...texts, frameOrigins: frameOrigins.join("\n") })

/** All of the machine, and the one that is set, which may be another name of one. */
const zonesWith = (chosen: string): ReadonlyArray<string> =>
  [...new Set(["UTC", ...Intl.supportedValuesOf("timeZone"), chosen])].filter((zone) => zone !== "")

interface PageProps {
  readonly viewer: Viewer
  readonly form: FormState
}

const SettingsPage = ({ form, viewer }: PageProps) => (
  <Frame viewer={viewer} section="/settings" title="Settings">
    <h2>Checkout</h2>
    <p>What your customers see at a payment's checkoutUrl, in live and in test mode.</p>
    <PostForm of={form} action={pathOf(viewer, "/settings")} csrf={viewer.csrf} submit="Save" labels={labels}>
      <TextField of={form} name="name" label={labels.name} hint="Of your shop, up to 60 characters." />
      <TextField of={form} name="accent" label={labels.accent} hint="Such as #1f5fd1. Empty: tilld's own." />
      <TextField
        of={form}
        name="logo"
        label={labels.logo}
        hint="The name of an image of at most 256 KiB that the operator has put there for you, such as shop.svg."
      />
      <TextField
        of={form}
        name="website"
        type="url"
        label={labels.website}
        hint="Where a payment that was not completed leads back to: your shop, or its help. https, up to 500 characters."
      />
      <TextField
        of={form}
        name="contact"
        label={labels.contact}
        hint="Where a customer asks whose money does not fit: an e-mail address, or a page. Shown with such money only."
      />
      <TextArea
        of={form}
        name="frameOrigins"
        label={labels.frameOrigins}
        hint={`One origin a line, such as https://shop.example, up to ${mostFrameOrigins}. Empty: none.`}
      />
      <h2>Portal</h2>
      <p>What came in is summed up by days of this time zone, and its worth is shown in this currency.</p>
      <Select
        of={form}
        name="timezone"
        label={labels.timezone}
        options={zonesWith(form.typed.get("timezone") ?? "").map((zone) => [zone, zone.replaceAll("_", " ")])}
      />
      <Select of={form} name="currency" label={labels.currency} options={Fiat.literals.map((fiat) => [fiat, fiat])} />
    </PostForm>
  </Frame>
)

export const settingsRoutes: ReadonlyArray<PortalRoute<Accounts | Reader | Settings | Writer>> = [
  {
    method: "GET",
    path: "/settings",
    role: "admin",
    handle: (viewer) =>
      Effect.gen(function* () {
        const form = formOf(yield* shopOf(yield* Reader, viewer.owner.account))
        return pageReply(<SettingsPage viewer={viewer} form={form} />)
      })
  },
  {
    method: "POST",
    path: "/settings",
    role: "admin",
    proof: { when: "shared", to: "change how the account's checkout looks and who may frame it", checksFirst: true },
    handle: (viewer, { form }) =>
      Effect.gen(function* () {
        const refused = (problems: FormState["problems"]) =>
          pageReply(<SettingsPage viewer={viewer} form={{ id, typed: form, problems }} />, {
            status: 422
          })
        const names = [...shopTexts, "frameOrigins"] as const
        const read = decodeForm(changeShop, form, names, { account: viewer.owner.account })
        if (Either.isLeft(read)) return refused(read.left)
        return yield* carryOut(changeShop, read.right, callerOf(viewer)).pipe(
          Effect.as(seeOther(afterDone(viewer, "/settings", "settings"))),
          Effect.catchTags({
            LogoRefused: ({ rule }) => Effect.succeed(refused([{ path: "logo", message: rule }])),
            UnknownAccount: Effect.die
          })
        )
      })
  }
]
