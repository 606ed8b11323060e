/** The inbox of exceptions. What is open is shown unless something else is asked for. */
import { Effect, Either, Schema } from "effect"
import type { Owner } from "../../Domain/Account.ts"
import { ChainName, chainTraits } from "../../Domain/Chain.ts"
import { decimalText } from "../../Domain/Currency.ts"
import { type PaymentException, PublicExceptionKind } from "../../Domain/Exception.ts"
import { exceptionDetails } from "../../Domain/ExceptionObject.ts"
import { problemsOf } from "../../Http/validationProblems.ts"
import { iso } from "../../lib/moment.ts"
import { ListExceptionsQuery } from "../../Payments/decisions/Api.ts"
import { type ListFilter, list, placeOf } from "../../Payments/ExceptionListRepo.ts"
import { references } from "../../Payments/PaymentListRepo.ts"
import type { Secrets } from "../../Secrets.ts"
import { Settings, type SettingsShape } from "../../Settings.ts"
import { type Db, Reader } from "../../Sql.ts"
import { Chips } from "../components/Chips.tsx"
import { FilterProblems, Filters, type FormState, Select } from "../components/Form.tsx"
import { Table } from "../components/Table.tsx"
import { framedReply } from "../framedReply.tsx"
import { type CsvColumns, csvPieces, csvReply, listed } from "../listed.tsx"
import { givenOf, withQuery } from "../query.ts"
import { type PortalHandler, type PortalRoute, pathOf } from "../route.ts"
import { chainIdOf, decimalsOfException, exceptionColumns } from "./exceptionView.tsx"

interface Row {
  readonly exception: PaymentException
  readonly details: ReturnType<typeof exceptionDetails>
  readonly merchantRef: string | undefined
  readonly chainId: number | undefined
  readonly decimals: number | undefined
}

const columns: CsvColumns<Row> = {
  id: ({ exception }) => exception.id,
  payment: ({ exception }) => exception.payment,
  merchantRef: ({ merchantRef }) => merchantRef,
  kind: ({ exception }) => exception.kind,
  status: ({ exception }) => exception.status,
  chain: ({ exception }) => exception.chain,
  chainId: ({ chainId }) => chainId?.toString(),
  currency: ({ exception }) => exception.currency,
  amount: ({ decimals, exception }) => decimalText(exception.amount.toString(), decimals),
  amountBaseUnits: ({ exception }) => exception.amount.toString(),
  amountRefunded: ({ decimals, exception }) => decimalText(exception.sentBack.toString(), decimals),
  refundTransactions: ({ exception }) => exception.refunds.flatMap(({ txHash }) => txHash ?? []).join(" "),
  from: ({ details }) => details.from,
  address: ({ details }) => details.address,
  path: ({ details }) => details.path,
  txHash: ({ exception }) => exception.txHash,
  detectedAt: ({ exception }) => iso(exception.openedAt),
  resolvedAt: ({ details }) => details.resolvedAt,
  resolutionTxHash: ({ details }) => details.resolutionTxHash,
  note: ({ details }) => details.note
}

/** A row per exception, newest first, with where the money came from and what was decided. */
const exceptionsCsv = (
  db: Db,
  owner: Owner,
  filter: Omit<ListFilter, "limit" | "after">,
  chains: SettingsShape["chains"]
) =>
  csvPieces(columns, (after: Row | undefined, limit) =>
    Effect.gen(function* () {
      const exceptions = yield* list(db, owner, { ...filter, limit, after: after && placeOf(after.exception) })
      const refs = yield* references(
        db,
        exceptions.flatMap(({ payment }) => payment ?? [])
      )
      return exceptions.map(
        (exception): Row => ({
          exception,
          details: exceptionDetails(exception),
          merchantRef: exception.payment && refs.get(exception.payment),
          chainId: chainIdOf(chains, exception),
          decimals: decimalsOfException(chains, exception)
        })
      )
    })
  )

const section = "/exceptions"
const { chain, kind, payment, status } = ListExceptionsQuery.fields
const decode = Schema.decodeUnknownEither(Schema.Struct({ chain, kind, payment, status }), { errors: "all" })

const any = ["", "any"] as const

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
    ? undefined
    : yield* listed(viewer, {
        ...{ path: section, query, filters: parameters, placeOf },
        read: (after, limit) => list(reader, owner, { ...decoded.right, limit, after })
      })
  const refs = yield* references(
    reader,
    (page?.rows ?? []).flatMap(({ payment: id }) => id ?? [])
  )
  return framedReply(
    viewer,
    { section, title: "Exceptions", isLive: page?.isFirst === true },
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
          options={[any, ...PublicExceptionKind.literals.map((one) => [one, one.replaceAll("_", " ")] as const)]}
        />
        <Select
          of={state}
          name="chain"
          label="Chain"
          options={[any, ...ChainName.literals.map((one) => [one, chainTraits[one].displayName] as const)]}
        />
      </Filters>
      {page?.rows === undefined ? null : (
        <>
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
          <p>
            <a href={withQuery(`${path}.csv`, parameters)}>Export these exceptions as CSV</a>
          </p>
        </>
      )}
      {page?.paging}
    </>,
    page?.rows === undefined ? 400 : 200
  )
})

const exported: PortalHandler<Reader | Secrets | Settings> = Effect.fnUntraced(function* (viewer, request) {
  const reader = yield* Reader
  const { chains } = yield* Settings
  const { filter } = filterOf(request.query)
  // The page shows what is wrong with the filters.
  if (Either.isLeft(filter)) return yield* show(viewer, request)
  return csvReply(`exceptions-${viewer.owner.mode}`, exceptionsCsv(reader, viewer.owner, filter.right, chains))
})

export const exceptionsRoutes: ReadonlyArray<PortalRoute<Reader | Secrets | Settings>> = [
  { method: "GET", path: section, role: "viewer", handle: show },
  { method: "GET", path: `${section}.csv`, role: "viewer", handle: exported }
]
