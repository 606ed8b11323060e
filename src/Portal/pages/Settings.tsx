/** How the account's checkout looks, and which sites may show it in a frame. */
import { Effect, Schema } from "effect"
import { audited } from "../../Auth/auditLog.ts"
import { shopOf } from "../../Auth/ShopsRepo.ts"
import { changeShop, shopAct } from "../../Auth/shops.ts"
import type { FieldProblem } from "../../Domain/ApiError.ts"
import { Accent, FrameOrigin, LogoFile, mostFrameOrigins, type Shop, ShopName, Website } from "../../Domain/Shop.ts"
import { pageReply, seeOther } from "../../Pages/reply.tsx"
import type { Settings } from "../../Settings.ts"
import { Reader, type Writer } from "../../Sql.ts"
import { blank, type FormState, PostForm, TextArea, TextField } from "../components/Form.tsx"
import { Notice } from "../components/values.tsx"
import { Frame } from "../Frame.tsx"
import { type PortalRoute, pathOf } from "../route.ts"
import type { Viewer } from "../Viewer.ts"

const id = "shop"

const labels = {
  name: "Name",
  accent: "Accent colour",
  logo: "Logo",
  website: "Website",
  frameOrigins: "Sites that may frame it"
}

const formOf = ({ accent = "", frameOrigins, logo = "", name = "", website = "" }: Shop): FormState =>
  blank(id, { name, accent, logo, website, frameOrigins: frameOrigins.join("\n") })

interface PageProps {
  readonly viewer: Viewer
  readonly form: FormState
  readonly saved: boolean
}

const SettingsPage = ({ form, saved, viewer }: PageProps) => (
  <Frame viewer={viewer} section="/settings" title="Settings">
    {saved ? <Notice tone="good">Saved. New visits to a checkout see it.</Notice> : null}
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
      <TextArea
        of={form}
        name="frameOrigins"
        label={labels.frameOrigins}
        hint={`One origin a line, such as https://shop.example, up to ${mostFrameOrigins}. Empty: none.`}
      />
    </PostForm>
  </Frame>
)

const problem = (path: string, rule: string, isGood: boolean): ReadonlyArray<FieldProblem> =>
  isGood ? [] : [{ path, message: `must be ${rule}` }]

const typedShop = (form: URLSearchParams) => {
  const text = (name: string) => (form.get(name) ?? "").trim()
  const one = (name: string) => text(name) || null
  return {
    name: one("name"),
    accent: one("accent")?.toLowerCase() ?? null,
    logo: one("logo"),
    website: one("website"),
    frameOrigins: text("frameOrigins").split(/\s+/).filter(Boolean)
  }
}

const problemsOf = ({ accent, frameOrigins, logo, name, website }: ReturnType<typeof typedShop>) => [
  ...problem("name", "1 to 60 printable characters", name === null || Schema.is(ShopName)(name)),
  ...problem("accent", "a colour such as #1f5fd1", accent === null || Schema.is(Accent)(accent)),
  ...problem("logo", "the name of a .png, .svg, .webp or .jpg file", logo === null || Schema.is(LogoFile)(logo)),
  ...problem("website", "an https URL of at most 500 characters", website === null || Schema.is(Website)(website)),
  ...problem(
    "frameOrigins",
    `origins such as https://shop.example without a path, at most ${mostFrameOrigins}`,
    frameOrigins.length <= mostFrameOrigins && frameOrigins.every(Schema.is(FrameOrigin))
  )
]

export const settingsRoutes: ReadonlyArray<PortalRoute<Reader | Settings | Writer>> = [
  {
    method: "GET",
    path: "/settings",
    role: "admin",
    handle: (viewer, { query }) =>
      Effect.gen(function* () {
        const form = formOf(yield* shopOf(yield* Reader, viewer.owner.account))
        return pageReply(<SettingsPage viewer={viewer} form={form} saved={query.has("saved")} />)
      })
  },
  {
    method: "POST",
    path: "/settings",
    role: "admin",
    proof: { when: "shared", to: "change how the account's checkout looks and who may frame it", checksFirst: true },
    handle: (viewer, { form }) =>
      Effect.gen(function* () {
        const change = typedShop(form)
        const refused = (problems: FormState["problems"]) =>
          pageReply(<SettingsPage viewer={viewer} form={{ id, typed: form, problems }} saved={false} />, {
            status: 422
          })
        const problems = problemsOf(change)
        if (problems.length > 0) return refused(problems)
        const { account } = viewer.owner
        return yield* audited(viewer.actor, shopAct(account, change), () => changeShop(account, change)).pipe(
          Effect.as(seeOther(pathOf(viewer, "/settings?saved"))),
          Effect.catchTag("LogoRefused", ({ rule }) => Effect.succeed(refused([{ path: "logo", message: rule }])))
        )
      })
  }
]
