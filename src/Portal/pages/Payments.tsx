/** The list of payments, and its search: one field for whatever names a payment, and the filters of the API. */
import { Clock, DateTime, Effect, Either, Schema } from "effect"
import { shopOf } from "../../Auth/shops.ts"
import { eachIncome } from "../../Books/BooksRepo.ts"
import type { Owner } from "../../Domain/Account.ts"
import type { Accounted } from "../../Domain/Event.ts"
import type { PaymentId } from "../../Domain/Ids.ts"
import { addRow, noSums } from "../../Domain/LedgerRow.ts"
import { decimalsOfPayment } from "../../Domain/Payment.ts"
import { betweenParts } from "../../Http/parts.ts"
import { problemsOf } from "../../Http/validationProblems.ts"
import { alternatives, maybe, must } from "../../lib/annotations.ts"
import { seeOther } from "../../Pages/reply.tsx"
import { ListPaymentsQuery } from "../../Payments/Api.ts"
import {
  hashFits,
  type ListFilter,
  namedBy,
  referenceBegins,
  type Searched,
  type Sought,
  searched
} from "../../Payments/PaymentListRepo.ts"
import { Payments } from "../../Payments.ts"
import type { Secrets } from "../../Secrets.ts"
import { Settings } from "../../Settings.ts"
import { type Db, Reader } from "../../Sql.ts"
import { framedReply, listed, notListed } from "../answers.tsx"
import { ChainFilter, Chips, FilterProblems, Filters, type FormState, Hidden, TextField } from "../components/Form.tsx"
import { Chain, type Column, countText, fiatText, Money, Table, Time } from "../components/values.tsx"
import { otherModeOf } from "../Frame.tsx"
import { countStates, filterOfState, isState, mostOfState, paymentStates } from "../PaymentStatesRepo.ts"
import { type PortalHandler, type PortalRoute, pageRoute, pathOf } from "../route.ts"
import { givenOf, mayAs, namedIn, pageSize, type Viewer, withQuery } from "../Viewer.ts"
import { OpenExceptions, PaymentState } from "./exceptionView.tsx"
import { IncomeOf, mostCounted } from "./sums.tsx"

type Filter = Omit<ListFilter, "limit" | "after">

/** Days of the account's time zone that a query may name. */
const periods = { today: "today", yesterday: "yesterday", "last-month": "last month" } as const

const isPeriod = (name: string | undefined): name is keyof typeof periods =>
  name !== undefined && Object.hasOwn(periods, name)

/** Whether dates were typed, which take the place of a named period. */
const hasDates = (query: URLSearchParams): boolean =>
  ["createdAfter", "createdBefore"].some((name) => (query.get(name) ?? "").trim() !== "")

/** When a named period began and ended, Unix milliseconds. */
const boundsOf = (period: keyof typeof periods, now: number, timezone: string) => {
  const unit = period === "last-month" ? "month" : "day"
  const current = DateTime.startOf(DateTime.unsafeMakeZoned(now, { timeZone: timezone }), unit)
  const [from, before] =
    period === "today"
      ? [current, undefined]
      : [DateTime.subtract(current, unit === "month" ? { months: 1 } : { days: 1 }), current]
  return {
    createdAfter: DateTime.toEpochMillis(from),
    ...(before === undefined ? {} : { createdBefore: DateTime.toEpochMillis(before) })
  }
}

const { chain, createdAfter, createdBefore } = ListPaymentsQuery.fields
const status = maybe(
  must(`be ${alternatives(Object.keys(paymentStates).filter(Boolean))}`, Schema.String.pipe(Schema.filter(isState)))
)
const decode = Schema.decodeUnknownEither(Schema.Struct({ chain, createdAfter, createdBefore, status }), {
  errors: "all"
})

/** The filters of a query, or what is wrong with them. Here, unlike in the API, a status is what a row says. */
const filtersOf = (query: URLSearchParams) => {
  const { created: _created, q: _q, ...rest } = givenOf(query)
  return Either.mapLeft(decode(rest), (error) => problemsOf(error, { kind: "query parameter", known: [] }))
}

/** Six or more digits of a hash or an address; four are enough where it is shortened in the middle, as explorers and wallets do. */
const partForm =
  /^(?:0x)?(?=[0-9a-f]{6}|[0-9a-f]{4,5}(?:…|\.{2,3})[0-9a-f]{4})([0-9a-f]{4,64})(?:(?:…|\.{2,3})([0-9a-f]{1,64}))?$/

/** The transaction or the address that an explorer's page is about; any other text as it is. */
const withoutExplorer = (text: string): string =>
  /^https?:\/\/[^\s]*\/(?:tx|address)\/(0x[0-9a-fA-F]{40,64})/.exec(text)?.[1] ?? text

/** Of an owner's payments so many of the newest are searched for a part of an address, or a text in their metadata. */
export const mostSearched = 10_000
const atOnce = 100
/** A shorter text is in too many; to look for a longer one takes the longer, up to seconds for thousands of characters. */
const leastText = 5
export const longestText = 100

/** Hashes with the same beginning, of all owners, that are looked at. */
const mostHashes = 1_000

/** Looks at the newest payments one by one, with a turn of the event loop in between. */
const searchNewest = Effect.fnUntraced(function* (db: Db, owner: Owner, sought: Sought) {
  const ids: Array<PaymentId> = []
  let after: Searched | undefined
  for (let looked = 0; looked < mostSearched && ids.length < pageSize; looked += atOnce) {
    const page: ReadonlyArray<Searched> = yield* searched(db, owner, sought, after, atOnce)
    for (const { id, isHit } of page) if (isHit === 1) ids.push(id)
    after = page.at(-1)
    if (page.length < atOnce) break
    yield* betweenParts
  }
  return ids.slice(0, pageSize)
})

/** What a text is a part of: the beginning of references or transactions, else of addresses, or in the metadata. At most a page. */
const partsOf = Effect.fnUntraced(function* (db: Db, owner: Owner, text: string) {
  // As SQLite's `lower`: of ASCII letters alone.
  const lower = text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
  const [, start, end = ""] = partForm.exec(lower) ?? []
  const begun = [
    ...(yield* referenceBegins(db, owner, text, pageSize)),
    ...(start === undefined ? [] : yield* hashFits(db, owner, `0x${start}`, end, mostHashes))
  ]
  if (begun.length > 0 || lower.length < leastText || lower.length > longestText) {
    return begun.slice(0, pageSize)
  }
  const address = start === undefined ? "" : `0x${start}%${end}`
  // Metadata is stored as JSON.
  return yield* searchNewest(db, owner, { address, text: JSON.stringify(lower).slice(1, -1) })
})

/** The filter that a query asks for, or what is wrong with it. */
export const searchOf = Effect.fn("Portal.searchOf")(function* (db: Db, owner: Owner, query: URLSearchParams) {
  const filters = filtersOf(query)
  if (Either.isLeft(filters)) return Either.left(filters.left)
  const { created, q } = givenOf(query)
  const { status = "", ...others } = filters.right
  let filter: Filter = { ...others, ...(yield* filterOfState(db, owner, status)) }
  if (isPeriod(created) && !hasDates(query)) {
    const { timezone = "UTC" } = yield* shopOf(db, owner.account)
    filter = { ...filter, ...boundsOf(created, yield* Clock.currentTimeMillis, timezone) }
  }
  if (q === undefined) return Either.right(filter)
  const text = withoutExplorer(q)
  const named = yield* namedBy(db, owner, text)
  if (named !== undefined) return Either.right({ ...filter, ...named })
  const { ids } = filter
  const found = yield* partsOf(db, owner, text)
  return Either.right({ ...filter, ids: ids === undefined ? found : found.filter((id) => ids.includes(id)) })
})

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
            filterNames.some((name) => name !== "status" && parameters[name])
              ? undefined
              : countText(count, mostOfState)
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
    ? notListed
    : yield* listed(viewer, {
        ...{ path: "/payments", query, filters },
        placeOf: ({ payment }: Accounted) => payment,
        read: (after, limit) => payments.list(owner, { ...search.right, limit, after })
      })
  const [only, another] = page.rows ?? []
  // One hit of a search is what was meant.
  if (only !== undefined && another === undefined && page.isFirst && isSearch(query)) {
    return seeOther(pathOf(viewer, `/payments/${only.payment.id}`))
  }
  const income = noSums()
  for (const { payment } of page.rows ?? []) {
    const filter = { ...owner, payment: payment.id }
    yield* eachIncome(reader, chains, filter, mostCounted, (row) => addRow(income, row))
  }
  const isBare = page.rows?.length === 0 && (isSearch(query) || !Object.values(filters).some(Boolean))
  const newPayment =
    mayAs(viewer.role, "admin") && !isBare ? { href: pathOf(viewer, "/payments/new"), text: "New payment" } : undefined
  return framedReply(
    viewer,
    {
      section: "/payments",
      title: "Payments",
      action: newPayment,
      also: isBare ? undefined : { href: pathOf(viewer, "/ledger.csv"), text: "Export" },
      isLive: page.isFirst,
      search: query.get("q") ?? ""
    },
    <>
      {isBare ? null : <PaymentFilters of={state} viewer={viewer} counts={yield* countStates(reader, owner)} />}
      <Table
        caption="Payments, newest first"
        columns={paymentColumns}
        rows={page.rows}
        keyOf={({ payment }) => payment.id}
        hrefOf={({ payment }) => pathOf(viewer, `/payments/${payment.id}`)}
        empty={<Nothing query={query} viewer={viewer} />}
      />
      {page.paging}
      {only === undefined ? null : (
        <>
          <h2>Their income</h2>
          <IncomeOf of={income} />
        </>
      )}
    </>,
    page.status
  )
})

export const paymentsRoutes: ReadonlyArray<PortalRoute<Payments | Reader | Secrets | Settings>> = [
  pageRoute("/payments", "viewer", show)
]
