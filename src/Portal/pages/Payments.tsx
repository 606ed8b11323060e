/** The list of payments, and its search. */
import { Effect, Either } from "effect"
import { eachIncome } from "../../Books/BooksRepo.ts"
import type { Accounted } from "../../Domain/Event.ts"
import { addRow, noSums } from "../../Domain/LedgerRow.ts"
import { decimalsOfPayment } from "../../Domain/Payment.ts"
import { seeOther } from "../../Pages/reply.tsx"
import { Payments } from "../../Payments.ts"
import type { Secrets } from "../../Secrets.ts"
import { Settings } from "../../Settings.ts"
import { Reader } from "../../Sql.ts"
import { Chips } from "../components/Chips.tsx"
import { ChainFilter, FilterProblems, Filters, type FormState, Hidden, TextField } from "../components/Form.tsx"
import { type Column, Table } from "../components/Table.tsx"
import { Chain, fiatText, Money, Time } from "../components/values.tsx"
import { otherModeOf } from "../Frame.tsx"
import { framedReply } from "../framedReply.tsx"
import { listed } from "../listed.tsx"
import { countStates, mostOfState, paymentStates } from "../PaymentStatesRepo.ts"
import { namedIn, withQuery } from "../query.ts"
import { type PortalHandler, type PortalRoute, pathOf } from "../route.ts"
import { mayAs, type Viewer } from "../Viewer.ts"
import { OpenExceptions, PaymentState } from "./exceptionView.tsx"
import { mostCounted } from "./overview.ts"
import { hasDates, periods, searchOf } from "./paymentSearch.ts"
import { IncomeOf } from "./sums.tsx"

const filterNames = ["q", "status", "created", "chain", "createdAfter", "createdBefore"]

/** The filters of a query, for links. Dates that were typed take the place of a named period. */
const filtersIn = (query: URLSearchParams): Record<string, string | undefined> => {
  const filters = Object.fromEntries(filterNames.map((name) => [name, query.get(name)?.trim()]))
  return { ...filters, ...(hasDates(query) ? { created: "" } : {}) }
}

interface PaymentFiltersProps {
  readonly of: FormState
  readonly viewer: Viewer
  /** By state, of all payments. */
  readonly counts: ReadonlyArray<readonly [state: string, count: number]>
}

const PaymentFilters = ({ counts, of, viewer }: PaymentFiltersProps) => {
  const path = pathOf(viewer, "/payments")
  const parameters = filtersIn(of.typed)
  const countText = (count: number) => (count < mostOfState ? String(count) : `${mostOfState - 1}+`)
  const typed = ["chain", "createdAfter", "createdBefore"]
  return (
    <>
      <Chips
        label="Status"
        options={counts
          .filter(([state, count]) => state === "" || state === parameters.status || count > 0)
          .map(([state, count]) => [
            state,
            namedIn<{ readonly text: string }>(paymentStates, state)?.text ?? state,
            // They are of all payments: with another filter the list has fewer.
            filterNames.some((name) => name !== "status" && parameters[name]) ? undefined : countText(count)
          ])}
        chosen={parameters.status ?? ""}
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
        <ChainFilter of={of} />
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
      <>
        <Money amount={payment.amount} currency={payment.currency} decimals={decimalsOfPayment(payment)} />
        {payment.usdValue === undefined ? null : <small class="muted fiat">{fiatText(payment.usdValue)}</small>}
      </>
    )
  },
  {
    name: "Kept",
    numeric: true,
    cell: ({ payment }) =>
      payment.received === 0n ? (
        <span class="none">–</span>
      ) : (
        <Money
          amount={payment.received - payment.refunded}
          currency={payment.currency}
          decimals={decimalsOfPayment(payment)}
        />
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

const show: PortalHandler<Payments | Reader | Secrets | Settings> = Effect.fnUntraced(function* (viewer, { query }) {
  const { owner } = viewer
  const payments = yield* Payments
  const reader = yield* Reader
  const { chains } = yield* Settings
  const search = yield* searchOf(reader, owner, query)
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
  const income = noSums()
  for (const { payment } of page?.rows ?? []) {
    const filter = { ...owner, payment: payment.id }
    yield* eachIncome(reader, chains, filter, mostCounted, (row) => addRow(income, row))
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
      also: isBare ? undefined : { href: pathOf(viewer, "/ledger.csv"), text: "Export" },
      isLive: page?.isFirst === true,
      search: query.get("q") ?? ""
    },
    <>
      {isBare ? null : <PaymentFilters of={state} viewer={viewer} counts={yield* countStates(reader, owner)} />}
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
        <>
          <h2>Their income</h2>
          <IncomeOf of={income} />
        </>
      )}
    </>,
    page?.rows === undefined ? 400 : 200
  )
})

export const paymentsRoutes: ReadonlyArray<PortalRoute<Payments | Reader | Secrets | Settings>> = [
  { method: "GET", path: "/payments", role: "viewer", handle: show }
]
