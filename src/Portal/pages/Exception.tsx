/** One exception, and the decision on it: accepted, or refunded. Deciding needs a fresh proof of identity. */
import { Effect, Either } from "effect"
import type { Settlement } from "../../Chains/ledger/SettlementTag.ts"
import type { WatchedAddresses } from "../../Chains/ledger/WatchedAddresses.ts"
import type { Networks } from "../../Chains/providers/Networks.ts"
import type { PaymentException } from "../../Domain/Exception.ts"
import type { Outbox } from "../../Events/Outbox.ts"
import { seeOther } from "../../Pages/reply.tsx"
import { ResolveBody } from "../../Payments/decisions/Api.ts"
import { decide } from "../../Payments/decisions/decide.ts"
import { byId } from "../../Payments/ExceptionsRepo.ts"
import { byId as paymentById } from "../../Payments/PaymentsRepo.ts"
import { Settings } from "../../Settings.ts"
import { Reader, type Writer } from "../../Sql.ts"
import { actOn } from "../act.ts"
import { bodyOfForm } from "../components/amountField.ts"
import { Unplaced } from "../components/values.tsx"
import { aboutOne, framedReply } from "../framedReply.tsx"
import { givenOf } from "../query.ts"
import { afterDone, formRoute, type PortalRoute, proofTo } from "../route.ts"
import { mayAs, type Viewer } from "../Viewer.ts"
import { DecisionForms, type Refused } from "./decisionForms.tsx"
import { decimalsOfException, ExceptionFacts } from "./exceptionView.tsx"

const section = "/exceptions"

type Action = (typeof ResolveBody.Type)["action"]

const ownersOwn = ({ owner: { account, mode } }: Viewer, id: string) =>
  Effect.map(
    Effect.flatMap(Reader, (reader) => byId(reader, id)),
    (found) => (found?.account === account && found.mode === mode ? found : undefined)
  )

const ofException = aboutOne(section, "exception", ownersOwn)

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
        {canDecide ? null : <Unplaced of={refused?.state.problems} />}
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

type Deciding = Networks | Outbox | Reader | Settings | Settlement | WatchedAddresses | Writer

const mustTick = [{ path: "confirmed", message: "must be ticked: the decision is final" }]

const decided = (action: Action) =>
  ofException<Deciding>((viewer, found, form) =>
    Effect.gen(function* () {
      const { chains } = yield* Settings
      const { id } = found
      const { confirmed, ...typed } = givenOf(form)
      const body = bodyOfForm(ResolveBody, { ...typed, action }, decimalsOfException(chains, found) ?? 0)
      const isConfirmed = action !== "accept" || confirmed === "yes"
      return yield* actOn(
        viewer,
        isConfirmed ? body : Either.left(mustTick),
        (input, { actor }) => decide(actor, viewer.owner, id, input),
        {
          done: () => seeOther(afterDone(viewer, `/exceptions/${id}`, action === "accept" ? "accepted" : "refunded")),
          refused: (problems, status) =>
            Effect.gen(function* () {
              // As it is now: somebody else may have decided meanwhile.
              const now = (yield* ownersOwn(viewer, id)) ?? found
              return yield* page(viewer, now, { refused: { action, state: { typed: form, problems } }, status })
            })
        }
      )
    })
  )

export const exceptionRoutes: ReadonlyArray<PortalRoute<Deciding>> = [
  {
    ...{ method: "GET", path: "/exceptions/:id", role: "viewer" },
    handle: ofException((viewer, exception) => page(viewer, exception, {}))
  },
  formRoute("/exceptions/:id/accept", "admin", decided("accept"), proofTo("accept the money of an exception")),
  formRoute("/exceptions/:id/refund", "admin", decided("refund"), proofTo("record a refund"))
]
