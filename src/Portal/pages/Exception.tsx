/** One exception, and the decision on it: accepted, or refunded. Deciding needs a fresh proof of identity. */
import { Effect, Either } from "effect"
import type { Settlement } from "../../Chains/ledger/SettlementTag.ts"
import type { WatchedAddresses } from "../../Chains/ledger/WatchedAddresses.ts"
import type { Networks } from "../../Chains/providers/Networks.ts"
import type { Owner } from "../../Domain/Account.ts"
import { type ApiError, invalid, statusOf } from "../../Domain/ApiError.ts"
import type { PaymentException } from "../../Domain/Exception.ts"
import type { Outbox } from "../../Events/Outbox.ts"
import { seeOther } from "../../Pages/reply.tsx"
import { ResolveBody } from "../../Payments/decisions/Api.ts"
import { decide } from "../../Payments/decisions/decide.ts"
import { byId } from "../../Payments/ExceptionsRepo.ts"
import { byId as paymentById } from "../../Payments/PaymentsRepo.ts"
import { Settings } from "../../Settings.ts"
import { type Db, Reader, type Writer } from "../../Sql.ts"
import { bodyOfForm, problemsOfRefusal } from "../components/amountField.ts"
import { moneyText, Notice } from "../components/values.tsx"
import { framedReply, missing } from "../framedReply.tsx"
import { givenOf } from "../query.ts"
import { afterDone, formRoute, type PortalHandler, type PortalRoute, proofTo } from "../route.ts"
import { mayAs, type Viewer } from "../Viewer.ts"
import { DecisionForms, type Refused } from "./decisionForms.tsx"
import { decimalsOfException, ExceptionFacts } from "./exceptionView.tsx"

const section = "/exceptions"

type Action = (typeof ResolveBody.Type)["action"]

const ownersOwn = (db: Db, { account, mode }: Owner, id: string) =>
  Effect.map(byId(db, id), (found) => (found?.account === account && found.mode === mode ? found : undefined))

interface Said {
  readonly refused?: Refused
  readonly status?: number
}

const page = (viewer: Viewer, exception: PaymentException, said: Said) =>
  Effect.gen(function* () {
    const { chains } = yield* Settings
    const { refused } = said
    const payment = exception.payment && (yield* paymentById(yield* Reader, exception.payment))
    const canDecide = exception.status === "open" && mayAs(viewer.role, "admin")
    return framedReply(
      viewer,
      { section, title: `Exception: ${exception.kind.replaceAll("_", " ")}` },
      <>
        {canDecide
          ? null
          : refused?.state.problems.map(({ message }) => (
              <Notice tone="bad" isAnswer>
                {message}
              </Notice>
            ))}
        <ExceptionFacts of={exception} payment={payment} chains={chains} viewer={viewer} />
        {canDecide ? (
          <>
            <h2>Decide</h2>
            <DecisionForms of={exception} payment={payment} chains={chains} viewer={viewer} refused={refused} />
          </>
        ) : null}
      </>,
      said.status
    )
  })

const show: PortalHandler<Reader | Settings> = Effect.fnUntraced(function* (viewer, { params: { id = "" } }) {
  const found = yield* ownersOwn(yield* Reader, viewer.owner, id)
  if (found === undefined) return missing(viewer, section, "exception")
  return yield* page(viewer, found, {})
})

type Deciding = Networks | Outbox | Reader | Settings | Settlement | WatchedAddresses | Writer

const decided =
  (action: Action): PortalHandler<Deciding> =>
  (viewer, { form, params: { id = "" } }) =>
    Effect.gen(function* () {
      const { chains } = yield* Settings
      const reader = yield* Reader
      const found = yield* ownersOwn(reader, viewer.owner, id)
      if (found === undefined) return missing(viewer, section, "exception")
      const given = givenOf(form)
      const { confirmed, csrf: _, ...typed } = given
      const refused = Effect.fnUntraced(function* (error: ApiError) {
        const state = { typed: new URLSearchParams(given), problems: problemsOfRefusal(error) }
        // As it is now: somebody else may have decided meanwhile.
        const now = (yield* ownersOwn(reader, viewer.owner, id)) ?? found
        return yield* page(viewer, now, { refused: { action, state }, status: statusOf[error.code] })
      })
      if (action === "accept" && confirmed !== "yes") {
        return yield* refused(invalid([{ path: "confirmed", message: "must be ticked: the decision is final" }]))
      }
      const decimals = decimalsOfException(chains, found) ?? 0
      const body = bodyOfForm(ResolveBody, { ...typed, action }, decimals, (units) =>
        units > found.amount
          ? `must be at most ${moneyText(found.amount, found.currency, decimals)}, which is what is open`
          : undefined
      )
      if (Either.isLeft(body)) return yield* refused(invalid(body.left))
      const outcome = action === "accept" ? "accepted" : "refunded"
      return yield* decide(viewer.actor, viewer.owner, id, body.right).pipe(
        Effect.as(seeOther(afterDone(viewer, `/exceptions/${found.id}`, outcome))),
        Effect.catchTag("ApiError", refused)
      )
    })

export const exceptionRoutes: ReadonlyArray<PortalRoute<Deciding>> = [
  { method: "GET", path: "/exceptions/:id", role: "viewer", handle: show },
  formRoute("/exceptions/:id/accept", "admin", decided("accept"), proofTo("accept the money of an exception")),
  formRoute("/exceptions/:id/refund", "admin", decided("refund"), proofTo("record a refund"))
]
