/** What a new account sets up, ticked by facts, each with the page where it is done. For those who may do it. */
import { Effect } from "effect"
import * as KeysRepo from "../../Auth/KeysRepo.ts"
import type { Shop } from "../../Domain/Shop.ts"
import { Mark } from "../../Pages/marks.tsx"
import type { Db } from "../../Sql.ts"
import * as EndpointsRepo from "../../Webhooks/queue/EndpointsRepo.ts"
import { pathOf } from "../route.ts"
import { mayAs, type Viewer } from "../Viewer.ts"

/** A shop that takes money knows its way: with so many payments within 30 days the steps are not shown. */
const enough = 10

interface Step {
  readonly text: string
  readonly isDone: boolean
  readonly href: string
  /** What its button says. */
  readonly act: string
}

interface Known {
  readonly now: number
  readonly shop: Shop
  /** Of the person who looks. */
  readonly hasCredentials: boolean
  /** Payments within 30 days. */
  readonly confirmed: number
}

/** The steps; none where all are done, or not needed. */
export const stepsOf = Effect.fn("Portal.firstSteps")(function* (
  db: Db,
  viewer: Viewer,
  { confirmed, hasCredentials, now, shop: { accent, logo, name } }: Known
) {
  const none: ReadonlyArray<Step> = []
  if (confirmed >= enough || !mayAs(viewer.role, "admin")) return none
  const { owner } = viewer
  const keys = yield* KeysRepo.countWorking(db, owner, false, now)
  const endpoints = yield* EndpointsRepo.list(db, owner)
  const isTest = owner.mode === "test"
  const step = (text: string, isDone: boolean, path: string, act: string): Step => ({
    ...{ text, isDone, act },
    href: pathOf(viewer, path)
  })
  const steps: ReadonlyArray<Step> = [
    step("Give your checkout a name and a colour", (name ?? accent ?? logo) !== undefined, "/settings", "Settings"),
    step("Create a key for your shop’s server", keys > 0, "/keys/new", "New key"),
    step(
      "Add a webhook endpoint, so that your server is told of payments",
      endpoints.length > 0,
      "/webhooks/new",
      "Add an endpoint"
    ),
    isTest
      ? step("Pay a first payment on a local chain", confirmed > 0, "/simulate", "Simulate")
      : step("Take a first payment", confirmed > 0, "/payments/new", "New payment"),
    step("Set a password or a passkey, so that you get in again", hasCredentials, "/me", "Sign-in")
  ]
  return steps.every(({ isDone }) => isDone) ? none : steps
})

export const FirstSteps = ({ of: steps }: { readonly of: ReadonlyArray<Step> }) =>
  steps.length === 0 ? null : (
    <section aria-labelledby="first-steps">
      <h2 id="first-steps">
        First steps <small class="muted">{`${steps.filter(({ isDone }) => isDone).length} of ${steps.length}`}</small>
      </h2>
      <ol class="first-steps card">
        {steps.map(({ act, href, isDone, text }) => (
          <li key={href} class={isDone ? "muted" : undefined}>
            {isDone ? (
              <>
                <Mark of="tick" /> {text} <span class="visually-hidden">: done</span>
              </>
            ) : (
              <>
                {text}{" "}
                <a class="button primary" href={href}>
                  {act}
                </a>
              </>
            )}
          </li>
        ))}
      </ol>
    </section>
  )
