/**
 * One exception, and the decision on it: accepted, or refunded. The page with the forms asks for a fresh proof before
 * anything is typed, and the posts ask again.
 */
import { Effect, Either, Schema } from "effect"
import type { Settlement } from "../../Chains/ledger/SettlementTag.ts"
import type { WatchedAddresses } from "../../Chains/ledger/WatchedAddresses.ts"
import type { Networks } from "../../Chains/providers/Networks.ts"
import { type ApiError, type FieldProblem, invalid, statusOf } from "../../Domain/ApiError.ts"
import { mayGrow, type PaymentException } from "../../Domain/Exception.ts"
import type { Owner } from "../../Domain/Owner.ts"
import type { Outbox } from "../../Events/Outbox.ts"
import { problemsOf } from "../../Http/validationProblems.ts"
import { seeOther } from "../../Pages/reply.tsx"
import { ResolveBody } from "../../Payments/decisions/Api.ts"
import { decide } from "../../Payments/decisions/decide.ts"
import { byId } from "../../Payments/ExceptionsRepo.ts"
import { Settings, type SettingsShape } from "../../Settings.ts"
import { type Db, Reader, type Writer } from "../../Sql.ts"
import { amountRule, baseUnitsOf } from "../components/amountField.ts"
import { blank, type FormState, PostForm, TextArea, TextField } from "../components/Form.tsx"
import { moneyText, Notice } from "../components/values.tsx"
import { framedReply, missing } from "../framedReply.tsx"
import { givenOf } from "../query.ts"
import { problemsOfRefusal } from "../refusal.ts"
import { type PortalHandler, type PortalRoute, pathOf } from "../route.ts"
import { mayAs, type Viewer } from "../Viewer.ts"
import { decimalsOfException, ExceptionFacts } from "./exceptionView.tsx"

const section = "/exceptions"

type Action = (typeof ResolveBody.Type)["action"]

const ownersOwn = (db: Db, { account, mode }: Owner, id: string) =>
  Effect.map(byId(db, id), (found) => (found?.account === account && found.mode === mode ? found : undefined))

const titleOf = ({ kind }: PaymentException): string => `Exception: ${kind.replaceAll("_", " ")}`

const done: Readonly<Record<string, string>> = {
  accepted: "The money was accepted.",
  refunded: "It was noted as sent back."
}

const show: PortalHandler<Reader | Settings> = Effect.fnUntraced(function* (viewer, { params: { id = "" }, query }) {
  const { chains } = yield* Settings
  const found = yield* ownersOwn(yield* Reader, viewer.owner, id)
  if (found === undefined) return missing(viewer, section, "exception")
  const text = done[query.get("done") ?? ""]
  return framedReply(
    viewer,
    { section, title: titleOf(found) },
    <>
      {text === undefined ? null : <Notice tone="good">{text}</Notice>}
      <ExceptionFacts of={found} chains={chains} viewer={viewer} />
      {found.status === "open" && mayAs(viewer.role, "admin") ? (
        <p>
          <a class="button primary" href={pathOf(viewer, `/exceptions/${found.id}/decide`)}>
            Accept it, or note a refund
          </a>
        </p>
      ) : null}
    </>
  )
})

interface Forms {
  readonly accept: FormState
  readonly refund: FormState
}

const blankForms: Forms = { accept: blank("accept"), refund: blank("refund") }

const labels = { txHash: "Transaction", amount: "Amount", note: "Note" }

const Note = ({ of }: { readonly of: FormState }) => (
  <TextArea
    of={of}
    name="note"
    label="Note (optional)"
    hint="Kept with the decision, and shown to everybody who sees the exception."
    rows={2}
  />
)

const AcceptForm = ({ csrf, exception, of, path }: DecisionFormProps) => (
  <section class="card" aria-labelledby="accepting">
    <h2 id="accepting">Accept it</h2>
    <p>
      You keep the money. A payment that is not confirmed yet is confirmed with it, and its webhooks go out: deliver
      what was paid for.
    </p>
    <PostForm of={of} action={`${path}/accept`} csrf={csrf} submit="Accept the money" labels={labels}>
      {exception.txHash === undefined || exception.kind === "reorged" ? (
        <TextField
          of={of}
          name="txHash"
          label="Transaction"
          hint="The one that paid, where you know it: the chain must have it, with its confirmations."
        />
      ) : null}
      <Note of={of} />
    </PostForm>
  </section>
)

interface DecisionFormProps {
  readonly exception: PaymentException
  readonly of: FormState
  readonly csrf: string
  /** The exception's page. */
  readonly path: string
}

const RefundForm = ({ chains, csrf, exception, of, path }: DecisionFormProps & Pick<SettingsShape, "chains">) => {
  const all = moneyText(exception.amount, exception.currency, decimalsOfException(chains, exception))
  return (
    <section class="card" aria-labelledby="refunding">
      <h2 id="refunding">Note that it was sent back</h2>
      <p>
        Send it back with your own wallet first: tilld holds no private key. Ask your customer for the address, since
        the sender may be an exchange.
      </p>
      <PostForm of={of} action={`${path}/refund`} csrf={csrf} submit="Note the refund" labels={labels} dangerous>
        <TextField
          of={of}
          name="amount"
          label="Amount"
          inputMode="decimal"
          hint={mayGrow(exception) ? `What you sent of ${all}, which may grow.` : `Empty: all of it, ${all}.`}
        />
        <TextField
          of={of}
          name="txHash"
          label="Transaction"
          hint="The one that sent it back. It is noted as you name it, and not checked."
        />
        <Note of={of} />
      </PostForm>
    </section>
  )
}

const decidePage = (
  viewer: Viewer,
  exception: PaymentException,
  chains: SettingsShape["chains"],
  forms: Forms,
  status = 200
) => {
  const common = { exception, csrf: viewer.csrf, path: pathOf(viewer, `/exceptions/${exception.id}`) }
  return framedReply(
    viewer,
    { section, title: titleOf(exception) },
    <>
      <ExceptionFacts of={exception} chains={chains} viewer={viewer} />
      <div class="cards">
        <AcceptForm of={forms.accept} {...common} />
        {exception.kind === "reorged" ? null : <RefundForm of={forms.refund} chains={chains} {...common} />}
      </div>
    </>,
    status
  )
}

const decideForm: PortalHandler<Reader | Settings> = Effect.fnUntraced(function* (viewer, { params: { id = "" } }) {
  const { chains } = yield* Settings
  const found = yield* ownersOwn(yield* Reader, viewer.owner, id)
  if (found === undefined) return missing(viewer, section, "exception")
  if (found.status !== "open") return seeOther(pathOf(viewer, `/exceptions/${found.id}`))
  return decidePage(viewer, found, chains, blankForms)
})

const decode = Schema.decodeUnknownEither(ResolveBody, { errors: "all" })

/** What was typed, as the API takes it: the amount in base units. */
const bodyOf = (
  action: Action,
  { amount, note, txHash }: Record<string, string>,
  exception: PaymentException,
  decimals: number
): Either.Either<typeof ResolveBody.Type, ReadonlyArray<FieldProblem>> => {
  const units = amount === undefined ? undefined : baseUnitsOf(amount, decimals)
  const typedAmount = (): ReadonlyArray<FieldProblem> => {
    if (amount === undefined) return []
    if (units === undefined || units === "0") return [{ path: "amount", message: amountRule(decimals) }]
    return BigInt(units) > exception.amount
      ? [
          {
            path: "amount",
            message: `must be at most ${moneyText(exception.amount, exception.currency, decimals)}, which is what is open`
          }
        ]
      : []
  }
  const problems = typedAmount()
  const decoded = decode({
    action,
    ...(units === undefined || problems.length > 0 ? {} : { amount: units }),
    ...(note === undefined ? {} : { note }),
    ...(txHash === undefined ? {} : { txHash })
  })
  if (Either.isRight(decoded)) return problems.length > 0 ? Either.left(problems) : decoded
  return Either.left([...problems, ...problemsOf(decoded.left, { kind: "field", known: [] })])
}

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
      const body = bodyOf(action, given, found, decimalsOfException(chains, found) ?? 0)
      const refused = Effect.fnUntraced(function* (error: ApiError) {
        const state: FormState = { id: action, typed: new URLSearchParams(given), problems: problemsOfRefusal(error) }
        // As it is now: somebody else may have decided meanwhile.
        const now = (yield* ownersOwn(reader, viewer.owner, id)) ?? found
        return decidePage(viewer, now, chains, { ...blankForms, [action]: state }, statusOf[error.code])
      })
      if (Either.isLeft(body)) return yield* refused(invalid(body.left))
      return yield* decide(viewer.actor, viewer.owner, id, body.right).pipe(
        Effect.as(
          seeOther(pathOf(viewer, `/exceptions/${found.id}?done=${action === "accept" ? "accepted" : "refunded"}`))
        ),
        Effect.catchTag("ApiError", refused)
      )
    })

export const exceptionRoutes: ReadonlyArray<PortalRoute<Deciding>> = [
  { method: "GET", path: "/exceptions/:id", role: "viewer", handle: show },
  { method: "GET", path: "/exceptions/:id/decide", role: "admin", fresh: true, handle: decideForm },
  { method: "POST", path: "/exceptions/:id/accept", role: "admin", fresh: true, handle: decided("accept") },
  { method: "POST", path: "/exceptions/:id/refund", role: "admin", fresh: true, handle: decided("refund") }
]
