/**
 * The inbox of exceptions, what is open unless something else is asked for; and one of them with the decision on it: accepted,
 * or refunded. Deciding needs a fresh proof of identity.
 */
import { Effect, Either, Schema } from "effect"
import type { Settlement } from "../../Chains/ledger/SettlementTag.ts"
import type { WatchedAddresses } from "../../Chains/ledger/WatchedAddresses.ts"
import type { Networks } from "../../Chains/providers/Networks.ts"
import { type PaymentException, PublicExceptionKind } from "../../Domain/Exception.ts"
import type { Outbox } from "../../Events/Outbox.ts"
import { problemsOf } from "../../Http/validationProblems.ts"
import { seeOther } from "../../Pages/reply.tsx"
import { ListExceptionsQuery, ResolveBody } from "../../Payments/decisions/Api.ts"
import { decide } from "../../Payments/decisions/decide.ts"
import { byId, list, placeOf } from "../../Payments/ExceptionsRepo.ts"
import { references } from "../../Payments/PaymentListRepo.ts"
import { byId as paymentById } from "../../Payments/PaymentsRepo.ts"
import type { Secrets } from "../../Secrets.ts"
import { Settings } from "../../Settings.ts"
import { Reader, type Writer } from "../../Sql.ts"
import { aboutOne, actOn, framedReply, listed, notListed } from "../answers.tsx"
import { ChainFilter, Chips, FilterProblems, Filters, type FormState, Select } from "../components/Form.tsx"
import { Table, Unplaced } from "../components/values.tsx"
import { afterDone, formRoute, type PortalHandler, type PortalRoute, pageRoute, pathOf, proofTo } from "../route.ts"
import { bodyOfForm, givenOf, mayAs, type Viewer, withQuery } from "../Viewer.ts"
import { DecisionForms, decimalsOfException, ExceptionFacts, exceptionColumns, type Refused } from "./exceptionView.tsx"

const section = "/exceptions"
const { chain, kind, payment, status } = ListExceptionsQuery.fields
const decode = Schema.decodeUnknownEither(Schema.Struct({ chain, kind, payment, status }), { errors: "all" })

/** What a query asks for: what is open, unless it names another status. */
const filterOf = (query: URLSearchParams) => {
  const { cursor: _, status: wanted = "open", ...given } = givenOf(query)
  const filters = { ...given, ...(wanted === "all" ? {} : { status: wanted }) }
  const filter = Either.mapBoth(decode(filters), {
    onLeft: (error) => problemsOf(error, { kind: "query parameter", known: [] }),
    onRight: ({ status: is, ...rest }) => ({ ...rest, isOpen: is === undefined ? undefined : is === "open" })
  })
  return { wanted, given, filter }
}

const show: PortalHandler<Reader | Secrets | Settings> = Effect.fnUntraced(function* (viewer, { query }) {
  const { owner } = viewer
  const reader = yield* Reader
  const { chains } = yield* Settings
  const { filter: decoded, given, wanted } = filterOf(query)
  const path = pathOf(viewer, section)
  const parameters = { ...given, status: wanted }
  const state: FormState = {
    id: "filter",
    typed: new URLSearchParams(parameters),
    problems: Either.isLeft(decoded) ? decoded.left : []
  }
  const page = Either.isLeft(decoded)
    ? notListed
    : yield* listed(viewer, {
        ...{ path: section, query, filters: parameters, placeOf },
        read: (after, limit) => list(reader, owner, { ...decoded.right, limit, after })
      })
  const refs = yield* references(
    reader,
    (page.rows ?? []).flatMap(({ payment: id }) => id ?? [])
  )
  return framedReply(
    viewer,
    { section, title: "Exceptions", isLive: page.isFirst },
    <>
      <p class="muted">
        Money that does not match what was asked for: too much, too little, too late, or something else. Accept each, or
        send it back.
      </p>
      <Chips
        label="Status"
        options={[
          ["open", "open"],
          ["resolved", "decided"],
          ["all", "all"]
        ]}
        chosen={wanted}
        hrefOf={(status) => withQuery(path, { ...parameters, status })}
      />
      <FilterProblems of={state} />
      <Filters action={path} used={given.kind !== undefined || given.chain !== undefined}>
        <input type="hidden" name="status" value={wanted} />
        <Select
          of={state}
          name="kind"
          label="Kind"
          options={[
            ["", "any"],
            ...PublicExceptionKind.literals.map((one) => [one, one.replaceAll("_", " ")] as const)
          ]}
        />
        <ChainFilter of={state} />
      </Filters>
      <Table
        caption="Exceptions, newest first"
        columns={exceptionColumns(viewer, chains, (id) => refs.get(id))}
        rows={page.rows}
        keyOf={({ id }) => id}
        hrefOf={({ id }) => pathOf(viewer, `${section}/${id}`)}
        empty={
          wanted === "open"
            ? "No exception is open: all money that came fits its payment, or was decided on."
            : "No exception fits."
        }
      />
      {page.paging}
    </>,
    page.status
  )
})

type Action = (typeof ResolveBody.Type)["action"]

const ownersOwn = ({ owner: { account, mode } }: Viewer, id: string) =>
  Effect.map(
    Effect.flatMap(Reader, (reader) => byId(reader, id)),
    (found) => (found?.account === account && found.mode === mode ? found : undefined)
  )

const ofException = aboutOne(section, "exception", ownersOwn)

const page = Effect.fnUntraced(function* (
  viewer: Viewer,
  exception: PaymentException,
  refused?: Refused,
  status?: number
) {
  const { chains } = yield* Settings
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
          <DecisionForms of={exception} payment={payment} chains={chains} refused={refused} />
        </>
      ) : null}
    </>,
    status
  )
})

const showOne = ofException((viewer, exception) => page(viewer, exception))

type Deciding = Networks | Outbox | Reader | Settings | Settlement | WatchedAddresses | Writer

const mustTick = [{ path: "confirmed", message: "must be ticked: the decision is final" }]

const decided = (action: Action) =>
  ofException<Deciding>((viewer, found, form) =>
    Effect.flatMap(Settings, ({ chains }) => {
      const { id } = found
      const { confirmed, ...typed } = givenOf(form)
      const body = bodyOfForm(ResolveBody, { ...typed, action }, decimalsOfException(chains, found) ?? 0)
      const isConfirmed = action !== "accept" || confirmed === "yes"
      return actOn(
        viewer,
        isConfirmed ? body : Either.left(mustTick),
        (input, { actor }) => decide(actor, viewer.owner, id, input),
        {
          done: () => seeOther(afterDone(viewer, `/exceptions/${id}`, action === "accept" ? "accepted" : "refunded")),
          refused: (problems, status) =>
            Effect.gen(function* () {
              // As it is now: somebody else may have decided meanwhile.
              const now = (yield* ownersOwn(viewer, id)) ?? found
              return yield* page(viewer, now, { action, state: { typed: form, problems } }, status)
            })
        }
      )
    })
  )

export const exceptionRoutes: ReadonlyArray<PortalRoute<Deciding | Secrets>> = [
  pageRoute(section, "viewer", show),
  pageRoute("/exceptions/:id", "viewer", showOne),
  formRoute("/exceptions/:id/accept", "admin", decided("accept"), proofTo("accept the money of an exception")),
  formRoute("/exceptions/:id/refund", "admin", decided("refund"), proofTo("record a refund"))
]
