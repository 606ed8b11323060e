/** How the account's checkout looks, and which sites may show it in a frame. */
import { Effect, Either, Schema } from "effect"
import { changeShop } from "../../Auth/shopOperations.ts"
import { imageTypeOf, readLogo, shopOf, storeLogoImage } from "../../Auth/shops.ts"
import type { Accounts } from "../../Auth.ts"
import { Accent, mostFrameOrigins, type Shop, shopTexts } from "../../Domain/Shop.ts"
import { themesOf } from "../../lib/theme.ts"
import { audited } from "../../Operations/auditLog.ts"
import { logoReply, pageReply, seeOther } from "../../Pages/reply.tsx"
import { Settings } from "../../Settings.ts"
import { Reader, type Writer } from "../../Sql.ts"
import { act, actOn, missing } from "../answers.tsx"
import { blank, type FormState, PostForm, Select, TextArea, TextField } from "../components/Form.tsx"
import { Frame } from "../Frame.tsx"
import { afterDone, formRoute, type PortalHandler, type PortalRoute, pageRoute, pathOf, proofTo } from "../route.ts"
import type { Viewer } from "../Viewer.ts"

const id = "shop"
const isAccent = Schema.is(Accent)
const zones = ["UTC", ...Intl.supportedValuesOf("timeZone")]

const labels = {
  name: "Name",
  accent: "Accent colour",
  logo: "Logo",
  website: "Website",
  contact: "Contact",
  timezone: "Time zone",
  currency: "Currency",
  minimumUsd: "Least worth of a payment, USD",
  invoiceRefs: "References of invoices",
  plugins: "Shop plugins",
  frameOrigins: "Sites that may embed it"
}

const formOf = ({ frameOrigins, ...texts }: Shop): FormState =>
  blank(id, { timezone: "UTC", currency: "USD", ...texts, frameOrigins: frameOrigins.join("\n") })

/** What can be chosen, and what is set: another name of a time zone, or a currency that was turned off later. */
const withChosen = (offered: ReadonlyArray<string>, chosen: string | null): ReadonlyArray<string> => [
  ...new Set(chosen ? [...offered, chosen] : offered)
]

interface PageProps {
  readonly viewer: Viewer
  readonly form: FormState
  readonly logoForm?: FormState
  /** The fiat currencies that are on. */
  readonly on?: ReadonlyArray<string>
}

/** The logo, the name and the colour as the checkout has them. */
const Preview = ({ form, viewer }: PageProps) => {
  const typed = (form.typed.get("accent") ?? "").toLowerCase()
  const themes = themesOf(isAccent(typed) ? typed : "#1f5fd1")
  return (
    <figure class="card preview" aria-label="Preview">
      <p class="shop">
        {form.typed.get("logo") ? <img src={pathOf(viewer, "/settings/logo")} alt="" /> : null}
        <strong>{form.typed.get("name") || "Your shop"}</strong>
      </p>
      <div class="acts">
        {(["light", "dark"] as const).map((scheme) => (
          <svg key={scheme} viewBox="0 0 200 76" role="img" aria-label={`A button in your colour, on a ${scheme} page`}>
            <rect class={scheme} width="200" height="76" rx="12" />
            <rect x="16" y="16" width="168" height="44" rx="8" fill={themes[scheme].accent} />
            <text x="100" y="43" text-anchor="middle" fill={themes[scheme].onAccent}>
              Pay 25.00 USDC
            </text>
          </svg>
        ))}
      </div>
      <figcaption class="muted">Your name, logo and colour on light and dark pages</figcaption>
    </figure>
  )
}

/** A script makes the file small enough for a form, and text. */
const LogoForm = ({ form }: Pick<PageProps, "form">) => (
  <section class="card" aria-labelledby="logo-title" data-uploads hidden>
    <h2 id="logo-title">Upload a logo</h2>
    <PostForm of={form} to="/settings/logo" submit="Upload">
      <div class="field">
        <label for="logo-file">Picture</label>
        <input type="file" id="logo-file" accept="image/png,image/jpeg,image/webp" />
        <p class="hint">PNG, JPEG or WebP. It is made smaller where it has to be.</p>
      </div>
      <input type="hidden" name="image" />
    </PostForm>
  </section>
)

const SettingsPage = ({ form, logoForm = blank("upload"), on = [], viewer }: PageProps) => (
  <Frame viewer={viewer} section="/settings" title="Settings">
    <div class="beside">
      <div class="card">
        <h2>Checkout</h2>
        <p>What your customers see on the payment page, in live and in test mode.</p>
        <PostForm of={form} to="/settings" submit="Save" labels={labels}>
          <TextField name="name" hint="Of your shop, up to 60 characters." />
          <TextField name="accent" hint="Such as #1f5fd1. Leave blank for blue." />
          <TextField
            name="logo"
            hint={
              <>
                <a href="#logo-title">Upload one</a>, or name one of the operator’s, such as shop.svg. Leave blank for
                none.
              </>
            }
          />
          <TextField
            name="website"
            type="url"
            hint="Where the payment page leads back to: your shop, or its help. https, up to 500 characters."
          />
          <TextField
            name="contact"
            hint="Your help: an e-mail address or a page. Shown to customers who paid too much, too little, too late or wrongly."
          />
          <TextArea
            name="frameOrigins"
            hint={`One per line, such as https://shop.example, up to ${mostFrameOrigins}. Leave blank for none.`}
          />
          <h2>Portal</h2>
          <p>What came in is summed up by days of this time zone, and its worth is shown in this currency.</p>
          <Select
            name="timezone"
            options={withChosen(zones, form.typed.get("timezone")).map((zone) => [zone, zone.replaceAll("_", " ")])}
          />
          <Select name="currency" options={withChosen(on, form.typed.get("currency")).map((fiat) => [fiat, fiat])} />
          <h2>Payments</h2>
          <TextField
            name="minimumUsd"
            hint="Such as 1 or 0.50: the API refuses an amount that is worth less, which is one in whole tokens more often than not. Leave blank to take any."
          />
          <Select
            name="invoiceRefs"
            options={[
              ["", "each once"],
              ["repeat", "may repeat"]
            ]}
          />
          <Select
            name="plugins"
            options={[
              ["", "off"],
              ["on", "on: they may connect, and use this account"]
            ]}
          />
        </PostForm>
      </div>
      <div>
        <Preview viewer={viewer} form={form} />
        <LogoForm form={logoForm} />
      </div>
    </div>
  </Frame>
)

/** The page, with the currencies that are on. */
const settingsReply = (props: PageProps, status = 200) =>
  Effect.map(Settings, ({ rates }) => pageReply(<SettingsPage {...props} on={rates.currencies} />, { status }))

/** What was uploaded, for the preview; or what the operator has. */
const showLogo: PortalHandler<Reader | Settings> = Effect.fnUntraced(function* (viewer) {
  const { account } = viewer.owner
  const { logo } = yield* shopOf(yield* Reader, account)
  if (logo === undefined) return missing(viewer, "/settings", "logo")
  return yield* readLogo(account, logo).pipe(
    Effect.map((bytes) => logoReply(logo, bytes)),
    Effect.catchTag("ShopRefused", () => Effect.succeed(missing(viewer, "/settings", "logo")))
  )
})

const saved = (viewer: Viewer) => seeOther(afterDone(viewer, "/settings", "settings"))

const uploadLogo: PortalHandler<Reader | Settings | Writer> = (viewer, { form }) => {
  const { account } = viewer.owner
  const bytes = Buffer.from(form.get("image") ?? "", "base64url")
  return actOn(
    viewer,
    Either.mapLeft(imageTypeOf(bytes), (message) => [{ path: "", message }]),
    (type, { actor }) => {
      const detail = { account, logo: `uploaded.${type}`, bytes: bytes.length }
      return audited(actor, { act: "accounts shop", detail }, () => storeLogoImage(account, bytes, type))
    },
    {
      done: () => saved(viewer),
      refused: (problems) =>
        Effect.gen(function* () {
          const shown = formOf(yield* shopOf(yield* Reader, account))
          return yield* settingsReply({ viewer, form: shown, logoForm: { ...blank("upload"), problems } }, 422)
        })
    }
  )
}

const change: PortalHandler<Accounts | Reader | Settings | Writer> = (viewer, { form }) =>
  act(viewer, changeShop, {
    ...{ form, fields: [...shopTexts, "frameOrigins"], given: { account: viewer.owner.account } },
    done: () => saved(viewer),
    refused: (problems) => settingsReply({ viewer, form: { id, typed: form, problems } }, 422),
    on: { ShopRefused: ({ part, rule }) => ({ path: part, message: rule }) }
  })

const proof = proofTo("change how the account’s checkout looks and who may frame it", "shared")

export const settingsRoutes: ReadonlyArray<PortalRoute<Accounts | Reader | Settings | Writer>> = [
  pageRoute("/settings", "admin", (viewer) =>
    Effect.gen(function* () {
      return yield* settingsReply({ viewer, form: formOf(yield* shopOf(yield* Reader, viewer.owner.account)) })
    })
  ),
  pageRoute("/settings/logo", "admin", showLogo),
  formRoute("/settings/logo", "admin", uploadLogo, proof),
  formRoute("/settings", "admin", change, proof)
]
