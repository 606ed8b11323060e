/** The list of payments, its search and its export. */
import { Effect, Either } from "effect"
import type { Owner } from "../../Domain/Account.ts"
import { sum } from "../../Domain/Amount.ts"
import { ChainName, chainTraits } from "../../Domain/Chain.ts"
import { decimalText } from "../../Domain/Currency.ts"
import type { Accounted } from "../../Domain/Event.ts"
import type { PaymentException } from "../../Domain/Exception.ts"
import { decimalsOfPayment, type Payment, PaymentStatus } from "../../Domain/Payment.ts"
import { iso } from "../../lib/moment.ts"
import { seeOther } from "../../Pages/reply.tsx"
import { firstOfPayments, shownInAnswers } from "../../Payments/ExceptionListRepo.ts"
import { list } from "../../Payments/PaymentListRepo.ts"
import { type Origins, originsOf } from "../../Payments/ReceiptsRepo.ts"
import { Payments } from "../../Payments.ts"
import type { Secrets } from "../../Secrets.ts"
import { Settings, type SettingsShape } from "../../Settings.ts"
import { type Db, Reader } from "../../Sql.ts"
import { Chips } from "../components/Chips.tsx"
import { FilterProblems, Filters, type FormState, Hidden, Select, TextField } from "../components/Form.tsx"
import { type Column, Table } from "../components/Table.tsx"
import { Chain, Money, Time } from "../components/values.tsx"
import { otherModeOf } from "../Frame.tsx"
import { framedReply } from "../framedReply.tsx"
import { type CsvColumns, csvPieces, csvReply, listed } from "../listed.tsx"
import { withQuery } from "../query.ts"
import { type PortalHandler, type PortalRoute, pathOf } from "../route.ts"
import { mayAs, type Viewer } from "../Viewer.ts"
import { chainIdOf, OpenExceptions, PaymentState } from "./exceptionView.tsx"
import { type Filter, hasDates, periods, searchOf } from "./paymentSearch.ts"

interface Row {
  readonly payment: Payment
  readonly decimals: number | undefined
  readonly chainId: number | undefined
  readonly origins: Origins | undefined
  readonly exceptions: ReadonlyArray<PaymentException>
}

/** An amount alone: its currency has a column of its own. Empty where its decimals are not known any more. */
const units = (amount: bigint | undefined, { decimals }: Row) =>
  amount === undefined ? undefined : decimalText(amount.toString(), decimals)

const when = (at: number | undefined) => (at === undefined ? undefined : iso(at))

/** What was sent back of the payment's own currency on its chain. */
const refunded = ({ exceptions, payment: { chain, currency } }: Row) =>
  sum(exceptions.flatMap((one) => (one.chain === chain && one.currency === currency ? [one.sentBack] : [])))

const columns: CsvColumns<Row> = {
  id: ({ payment }) => payment.id,
  merchantRef: ({ payment }) => payment.merchantRef,
  status: ({ payment }) => payment.status,
  failureReason: ({ payment }) => payment.failureReason,
  chain: ({ payment }) => payment.chain,
  currency: ({ payment }) => payment.currency,
  amount: (row) => units(row.payment.amount, row),
  amountReceived: (row) => units(row.payment.amountReceived, row),
  amountBaseUnits: ({ payment }) => payment.amount.toString(),
  usdValue: ({ payment }) => payment.usdValue,
  address: ({ payment }) => payment.address,
  txHash: ({ payment }) => payment.txHash,
  createdAt: ({ payment }) => iso(payment.createdAt),
  expiresAt: ({ payment }) => iso(payment.expiresAt),
  confirmedAt: ({ payment }) => when(payment.confirmedAt),
  metadata: ({ payment }) => payment.metadata,
  chainId: ({ chainId }) => chainId?.toString(),
  transactions: ({ origins }) => origins?.transactions.join(" "),
  senders: ({ origins }) => origins?.senders.join(" "),
  amountRefunded: (row) => units(refunded(row), row),
  openExceptions: ({ exceptions }) => `${exceptions.filter(({ status }) => status === "open").length}`,
  exceptions: ({ exceptions }) => exceptions.map(({ id, kind, status }) => `${kind} ${status} ${id}`).join("; ")
}

/** A row per payment, newest first, with its transactions and what became of money that did not fit. */
const paymentsCsv = (db: Db, owner: Owner, filter: Filter, chains: SettingsShape["chains"]) =>
  csvPieces(columns, (after: Row | undefined, limit) =>
    Effect.gen(function* () {
      const payments = yield* list(db, owner, { ...filter, limit, after: after?.payment })
      const ids = payments.map(({ id }) => id)
      const origins = yield* originsOf(db, ids)
      const exceptions = yield* firstOfPayments(db, ids, shownInAnswers)
      return payments.map(
        (payment): Row => ({
          payment,
          decimals: decimalsOfPayment(payment),
          chainId: chainIdOf(chains, payment),
          origins: origins.get(payment.id),
          exceptions: exceptions(payment.id).exceptions
        })
      )
    })
  )

const statuses: ReadonlyArray<readonly [value: string, text: string]> = [...PaymentStatus.literals, "cancelled"].map(
  (status) => [status, status]
)

const filterNames = ["q", "status", "created", "chain", "createdAfter", "createdBefore"]

/** The filters of a query, for links. Dates that were typed take the place of a named period. */
const filtersIn = (query: URLSearchParams): Record<string, string | undefined> => {
  const filters = Object.fromEntries(filterNames.map((name) => [name, query.get(name)?.trim()]))
  return { ...filters, ...(hasDates(query) ? { created: "" } : {}) }
}

const PaymentFilters = ({ of, viewer }: { readonly of: FormState; readonly viewer: Viewer }) => {
  const path = pathOf(viewer, "/payments")
  const parameters = filtersIn(of.typed)
  const typed = ["chain", "createdAfter", "createdBefore"]
  return (
    <>
      <Chips
        label="Status"
        options={statuses}
        chosen={parameters.status}
        hrefOf={(status) => withQuery(path, { ...parameters, status })}
      />
      <Chips
        label="Created"
        options={Object.entries(periods)}
        chosen={parameters.created}
        hrefOf={(created) => withQuery(path, { ...parameters, created, createdAfter: "", createdBefore: "" })}
      />
      <FilterProblems of={of} />
      <Filters action={path} used={typed.some((name) => parameters[name])}>
        <Hidden of={of} name="q" />
        <Hidden of={of} name="status" />
        <Hidden of={of} name="created" />
        <Select
          of={of}
          name="chain"
          label="Chain"
          options={[
            ["", "any"],
            ...ChainName.literals.map((chain) => [chain, chainTraits[chain].displayName] as const)
          ]}
        />
        <TextField of={of} name="createdAfter" label="Created from (UTC)" type="date" />
        <TextField of={of} name="createdBefore" label="Created before (UTC)" type="date" />
      </Filters>
      {parameters.q ? (
        <Chips
          label="Search"
          options={[[parameters.q, parameters.q]]}
          chosen={parameters.q}
          hrefOf={() => withQuery(path, { ...parameters, q: "" })}
        />
      ) : null}
    </>
  )
}

/** What a list of payments shows of each. */
export const paymentColumns: ReadonlyArray<Column<Accounted>> = [
  { name: "Reference", cell: ({ payment }) => payment.merchantRef },
  {
    name: "Status",
    cell: ({ exceptions, payment }) => (
      <>
        <PaymentState of={payment} /> <OpenExceptions of={exceptions} />
      </>
    )
  },
  {
    name: "Amount",
    numeric: true,
    cell: ({ payment }) => (
      <Money amount={payment.amount} currency={payment.currency} decimals={decimalsOfPayment(payment)} />
    )
  },
  {
    name: "Received",
    numeric: true,
    cell: ({ payment }) =>
      payment.amountReceived === undefined ? (
        <span class="none">–</span>
      ) : (
        <Money amount={payment.amountReceived} currency={payment.currency} decimals={decimalsOfPayment(payment)} />
      )
  },
  { name: "Chain", cell: ({ payment }) => <Chain of={payment.chain} /> },
  { name: "Created", cell: ({ payment }) => <Time at={payment.createdAt} /> }
]

const Nothing = ({ query, viewer }: { readonly query: URLSearchParams; readonly viewer: Viewer }) => {
  const { q, ...filters } = filtersIn(query)
  const all = <a href={pathOf(viewer, "/payments")}>Clear the search and filters</a>
  if (q) {
    return (
      <>
        <b>No payment matches “{q}”.</b>
        <br />
        Try the start of a reference, six or more characters of an address or a transaction, who paid, or an e-mail
        address.
        <span class="ways-on">
          <a class="button primary" href={pathOf(viewer, "/payments")}>
            Show all payments
          </a>
          <a class="button" href={withQuery(pathOf(otherModeOf(viewer), "/payments"), { q })}>
            Search in {otherModeOf(viewer).owner.mode} mode
          </a>
        </span>
      </>
    )
  }
  if (Object.values(filters).some(Boolean)) return <>No payment has these filters. {all}</>
  return (
    <>
      <b>No payments yet</b>
      <br />
      Payments arrive through the API, or you create one by hand and share its link.
      {mayAs(viewer.role, "admin") ? (
        <span class="ways-on">
          <a class="button primary" href={pathOf(viewer, "/payments/new")}>
            New payment
          </a>
          <a class="button" href={pathOf(viewer, "/keys/new")}>
            Connect your shop
          </a>
          <a href="/docs">Read the API’s first steps</a>
        </span>
      ) : null}
    </>
  )
}

/** Whether the query names something, and filters nothing. */
const isSearch = (query: URLSearchParams): boolean =>
  Object.entries(filtersIn(query)).every(([name, value]) => Boolean(value) === (name === "q"))

const show: PortalHandler<Payments | Reader | Secrets> = Effect.fnUntraced(function* (viewer, { query }) {
  const { owner } = viewer
  const payments = yield* Payments
  const search = yield* searchOf(yield* Reader, owner, query)
  const filters = filtersIn(query)
  const state: FormState = { id: "find", typed: query, problems: Either.isLeft(search) ? search.left : [] }
  const page = Either.isLeft(search)
    ? undefined
    : yield* listed(viewer, {
        ...{ path: "/payments", query, filters },
        placeOf: ({ payment }: Accounted) => payment,
        read: (after, limit) => payments.list(owner, { ...search.right, limit, after })
      })
  const [only, another] = page?.rows ?? []
  // One hit of a search is what was meant.
  if (only !== undefined && another === undefined && page?.isFirst && isSearch(query)) {
    return seeOther(pathOf(viewer, `/payments/${only.payment.id}`))
  }
  const isBare = page?.rows?.length === 0 && (isSearch(query) || !Object.values(filters).some(Boolean))
  const newPayment =
    mayAs(viewer.role, "admin") && !isBare ? { href: pathOf(viewer, "/payments/new"), text: "New payment" } : undefined
  return framedReply(
    viewer,
    {
      section: "/payments",
      title: "Payments",
      action: newPayment,
      isLive: page?.isFirst === true,
      search: query.get("q") ?? ""
    },
    <>
      {isBare ? null : <PaymentFilters of={state} viewer={viewer} />}
      {page?.rows === undefined ? null : (
        <Table
          caption="Payments, newest first"
          columns={paymentColumns}
          rows={page.rows}
          keyOf={({ payment }) => payment.id}
          hrefOf={({ payment }) => pathOf(viewer, `/payments/${payment.id}`)}
          empty={<Nothing query={query} viewer={viewer} />}
        />
      )}
      {page?.paging}
      {only === undefined ? null : (
        <p>
          <a href={withQuery(pathOf(viewer, "/payments.csv"), filters)}>Export these payments as CSV</a>
        </p>
      )}
    </>,
    page?.rows === undefined ? 400 : 200
  )
})

/** With the filters that are one word: `payments-live-last-month`. */
const fileName = ({ owner }: Viewer, query: URLSearchParams): string => {
  const { q: _q, ...filters } = filtersIn(query)
  const words = Object.values(filters).filter((value = "") => /^[a-z0-9-]+$/.test(value))
  return ["payments", owner.mode, ...words].join("-")
}

const exported: PortalHandler<Payments | Reader | Secrets | Settings> = Effect.fnUntraced(function* (viewer, request) {
  const reader = yield* Reader
  const { chains } = yield* Settings
  const search = yield* searchOf(reader, viewer.owner, request.query)
  // The page shows what is wrong with the filters.
  if (Either.isLeft(search)) return yield* show(viewer, request)
  return csvReply(fileName(viewer, request.query), paymentsCsv(reader, viewer.owner, search.right, chains))
})

export const paymentsRoutes: ReadonlyArray<PortalRoute<Payments | Reader | Secrets | Settings>> = [
  { method: "GET", path: "/payments", role: "viewer", handle: show },
  { method: "GET", path: "/payments.csv", role: "viewer", handle: exported }
]
