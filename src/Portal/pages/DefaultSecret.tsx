/** The account's default secret, which signs deliveries to payments' own webhookUrls: since when, and a new one. */

import { Clock, Effect, Either, Redacted } from "effect"
import type { Accounts } from "../../Auth.ts"
import { defaultOverlapHours } from "../../Domain/ApiKey.ts"
import { iso } from "../../lib/moment.ts"
import { carryOut } from "../../Operations/auditLog.ts"
import { decodeForm } from "../../Operations/inputText.ts"
import { Reader, type Writer } from "../../Sql.ts"
import { ageOf, type DefaultSecretAge } from "../../Webhooks/DefaultSecrets.ts"
import type { SigningKeys } from "../../Webhooks/SigningKeys.ts"
import { rotateSecret } from "../../Webhooks/secretOperations.ts"
import { markOf } from "../../Webhooks/secretPair.ts"
import { blank, type FormState, Hidden, PostForm, Select } from "../components/Form.tsx"
import { Facts } from "../components/Table.tsx"
import { Time, utcText } from "../components/values.tsx"
import { textOf } from "../fields.ts"
import { framedReply } from "../framedReply.tsx"
import { type PortalHandler, type PortalRoute, pathOf } from "../route.ts"
import { callerOf, mayAs, type Viewer } from "../Viewer.ts"
import { NewSecret, overlaps } from "./WebhookViews.tsx"

type Needs = Accounts | Reader | SigningKeys | Writer

const path = "/webhooks/default-secret"
const page = { section: "/webhooks", title: "Default secret" } as const
const labels = { overlap: "The former secret also signs for" }

interface AgeProps {
  readonly of: DefaultSecretAge | undefined
  /** Unix milliseconds. */
  readonly now: number
}

const Age = ({ now, of }: AgeProps) =>
  of === undefined ? (
    <p class="empty">There is none yet: it is made when it is first needed.</p>
  ) : (
    <Facts
      of={{
        Created: <Time at={of.createdAt} />,
        "The former one signs until":
          of.previousUntil === null || of.previousUntil <= now ? undefined : <Time at={of.previousUntil} />
      }}
    />
  )

const show = (viewer: Viewer, refused?: FormState) =>
  Effect.gen(function* () {
    const age = yield* ageOf(yield* Reader, viewer.owner)
    const form = refused ?? blank("rotation", { overlap: `${defaultOverlapHours}h`, replaces: markOf(age) })
    const now = yield* Clock.currentTimeMillis
    return framedReply(
      viewer,
      page,
      <>
        <p>
          It signs what is sent to a payment’s own webhookUrl, unless that is the URL of an endpoint. It is stored
          sealed, and shown only when it is new.
        </p>
        <section class="card">
          <Age of={age} now={now} />
        </section>
        {mayAs(viewer.role, "admin") ? (
          <section class="card" aria-label="A new secret">
            <PostForm
              of={form}
              action={pathOf(viewer, path)}
              csrf={viewer.csrf}
              submit="Make a new secret"
              labels={labels}
            >
              <Hidden of={form} name="replaces" />
              <Select of={form} name="overlap" label={labels.overlap} options={overlaps} />
            </PostForm>
          </section>
        ) : null}
      </>,
      refused === undefined ? 200 : 422
    )
  })

/** Refuses a third secret beside two that sign. `until`: Unix milliseconds. */
export const twoSign = (until: number): string =>
  `must be no time: the secret before this one still signs, until ${utcText(iso(until))}. Wait for that, or end both now`

/** The form was sent again, or someone else rotated: another secret is in force, and is not shown. */
export const secretReplaced = (viewer: Viewer, href: string) =>
  framedReply(
    viewer,
    { section: "/webhooks", title: "Nothing was replaced now" },
    <p>
      Another secret is in force than when this form was opened: the form was sent twice and has replaced it already, or
      somebody else has. If nobody kept what was shown, replace it once more: <a href={href}>go back</a>.
    </p>,
    409
  )

interface ShownSecret {
  readonly secret: string
  readonly previous?: { readonly until: number } | undefined
}

const shownOnce = (viewer: Viewer, { previous, secret }: ShownSecret, isFirst: boolean) =>
  framedReply(
    viewer,
    page,
    <NewSecret
      label="The default secret"
      secret={Redacted.make(secret)}
      formerUntil={previous?.until}
      isFirst={isFirst}
      href={pathOf(viewer, "/webhooks")}
      onward="to the list"
    />
  )

const rotate: PortalHandler<Needs> = (viewer, { form }) =>
  Effect.gen(function* () {
    const refused = (message: string) =>
      show(viewer, { id: "rotation", typed: form, problems: [{ path: "overlap", message }] })
    const read = decodeForm(rotateSecret, form, ["overlap"], {
      ...viewer.owner,
      replaces: textOf(form, "replaces")
    })
    if (Either.isLeft(read)) return yield* refused(read.left.map(({ message }) => message).join("; "))
    return yield* carryOut(rotateSecret, read.right, callerOf(viewer)).pipe(
      Effect.map((secret) => shownOnce(viewer, secret, read.right.replaces === markOf(undefined))),
      Effect.catchTags({
        SecretReplaced: () => Effect.succeed(secretReplaced(viewer, pathOf(viewer, path))),
        RotationUnderWay: ({ until }) => refused(twoSign(until)),
        SecretUnreadable: () => refused("must be no time: the stored secret is damaged, and cannot sign any longer"),
        UnknownAccount: Effect.die
      })
    )
  })

export const defaultSecretRoutes: ReadonlyArray<PortalRoute<Needs>> = [
  { method: "GET", path, role: "viewer", handle: (viewer) => show(viewer) },
  {
    method: "POST",
    path,
    role: "admin",
    proof: { when: "live", to: "make a new default secret", checksFirst: true },
    handle: rotate
  }
]
