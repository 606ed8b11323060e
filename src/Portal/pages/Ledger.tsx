/** The ledger, and its file: what came, went back, was collected and paid for gas, and what of that is income. */
import { Clock, Effect, Either, Schema } from "effect"
import { shopOf } from "../../Auth/shops.ts"
import { ListLedgerQuery } from "../../Books/Api.ts"
import { eachIncome, type LedgerPlace, page, placeIn, placeText } from "../../Books/BooksRepo.ts"
import { ledgerHead, ledgerLines, Month, monthIn, monthOf } from "../../Books/ledgerOperation.ts"
import { addRow, LedgerKind, noSums, type OwnedRow } from "../../Domain/LedgerRow.ts"
import { invalidCursor } from "../../Http/cursor.ts"
import { problemsOf } from "../../Http/validationProblems.ts"
import { Settings, type SettingsShape } from "../../Settings.ts"
import { Reader } from "../../Sql.ts"
import { csvReply, filePieces, framedReply } from "../answers.tsx"
import { ChainFilter, Chips, FilterProblems, Filters, type FormState, Hidden, TextField } from "../components/Form.tsx"
import { Chain, type Column, fiatText, Money, Notice, OnChain, Paging, Table, Time } from "../components/values.tsx"
import { type PortalHandler, type PortalRoute, pageRoute, pathOf } from "../route.ts"
import { givenOf, pageSize, type Viewer, withQuery } from "../Viewer.ts"
import { chainIdOf } from "./exceptionView.tsx"
import { IncomeOf, mostCounted } from "./sums.tsx"

const section = "/ledger"
const { chain, currency, kind, payment } = ListLedgerQuery.fields
const month = Schema.optionalWith(Month, { exact: true })
const decode = Schema.decodeUnknownEither(Schema.Struct({ chain, currency, kind, payment, month }), { errors: "all" })

/** What a query asks for, or what is wrong with it; and this month and the last one, of the account. */
const askedFor = Effect.fnUntraced(function* ({ owner }: Viewer, query: URLSearchParams) {
  const { timezone = "UTC" } = yield* shopOf(yield* Reader, owner.account)
  const { cursor = "", ...given } = givenOf(query)
  const filter = Either.mapBoth(decode(given), {
    onLeft: (error) => problemsOf(error, { kind: "query parameter", known: [] }),
    onRight: ({ month, ...rest }) => ({ ...owner, ...rest, ...(month === undefined ? {} : monthIn(month, timezone)) })
  })
  const current = monthOf(yield* Clock.currentTimeMillis, timezone)
  const months = [current, monthOf(monthIn(current, timezone).from - 1, timezone)]
  return { cursor, given, filter, months, timezone }
})

const columnsOf = (viewer: Viewer, chains: SettingsShape["chains"]): ReadonlyArray<Column<OwnedRow>> => [
  { name: "Time", cell: ({ at }) => <Time at={at} /> },
  {
    name: "Kind",
    cell: ({ kind, status, what }) => [kind, what, status].filter(Boolean).join(", ").replaceAll("_", " ")
  },
  {
    name: "Payment",
    cell: ({ merchantRef, payment }) =>
      payment === undefined ? null : <a href={pathOf(viewer, `/payments/${payment}`)}>{merchantRef ?? payment}</a>
  },
  { name: "Chain", minor: true, cell: (row) => <Chain of={row.chain} /> },
  {
    name: "Amount",
    numeric: true,
    cell: (row) => <Money amount={BigInt(row.amount)} currency={row.currency} decimals={row.decimals} />
  },
  {
    name: "Worth",
    numeric: true,
    cell: ({ worth, worthCurrency, worthUnknown = "" }) =>
      worth === undefined ? worthUnknown.replaceAll("_", " ") : fiatText(worth, worthCurrency)
  },
  {
    name: "Income",
    numeric: true,
    cell: ({ income, worthCurrency }) => (income === undefined ? null : fiatText(income, worthCurrency))
  },
  {
    name: "Transaction",
    minor: true,
    cell: ({ txHash, ...row }) =>
      txHash === undefined ? null : <OnChain kind="tx" value={txHash} chainId={chainIdOf(chains, row)} short />
  }
]

const show: PortalHandler<Reader | Settings> = Effect.fnUntraced(function* (viewer, { query }) {
  const reader = yield* Reader
  const { chains } = yield* Settings
  const { cursor, filter, given, months, timezone } = yield* askedFor(viewer, query)
  const here = pathOf(viewer, section)
  const state: FormState = { id: "filter", typed: query, problems: Either.isLeft(filter) ? filter.left : [] }
  const after = placeIn(cursor)
  const isOther = cursor !== "" && after === undefined
  const rows = isOther || Either.isLeft(filter) ? undefined : yield* page(reader, chains, filter.right, after, pageSize)
  const income = noSums()
  const since = Either.isLeft(filter)
    ? undefined
    : yield* eachIncome(reader, chains, filter.right, mostCounted, (row) => addRow(income, row))
  return framedReply(
    viewer,
    { section, title: "Ledger" },
    <>
      <p class="muted">
        What came, went back, was collected and paid for gas, with its worth when tilld first stored it. A month is one
        of {timezone}. <a href="/guide/books">How to close it</a>
      </p>
      <Chips
        label="Month"
        options={months.map((one) => [one, one])}
        chosen={given.month}
        hrefOf={(one) => withQuery(here, { ...given, month: one })}
      />
      <Chips
        label="Kind"
        options={LedgerKind.literals.map((one) => [one, one])}
        chosen={given.kind}
        hrefOf={(one) => withQuery(here, { ...given, kind: one })}
      />
      <FilterProblems of={state} />
      <Filters action={here} used={["month", "chain", "currency", "payment"].some((name) => given[name])}>
        <Hidden of={state} name="kind" />
        <TextField of={state} name="month" label="Month" placeholder="2026-11" />
        <ChainFilter of={state} />
        <TextField of={state} name="currency" label="Currency" placeholder="USDC" />
        <TextField of={state} name="payment" label="Payment’s id" placeholder="pay_…" />
      </Filters>
      {isOther ? <Notice tone="bad">{invalidCursor.message}</Notice> : null}
      {rows === undefined ? null : (
        <>
          <h2>Income of all these rows</h2>
          <IncomeOf of={income} since={since} />
          <Table
            caption="The ledger, newest first"
            columns={columnsOf(viewer, chains)}
            rows={rows.rows}
            keyOf={({ id }) => id}
            empty="No row fits: money is here once a second provider has it."
          />
          <Paging
            first={cursor === "" ? undefined : withQuery(here, given)}
            next={rows.next && withQuery(here, { ...given, cursor: placeText(rows.next) })}
          />
          <p>
            <a href={withQuery(`${here}.csv`, given)}>Export all these rows as CSV</a>
          </p>
        </>
      )}
    </>,
    rows === undefined ? 400 : 200
  )
})

/** Rows of a file that are read at once. */
const atOnce = 100

const exported: PortalHandler<Reader | Settings> = Effect.fnUntraced(function* (viewer, request) {
  const reader = yield* Reader
  const { chains } = yield* Settings
  const { filter, given } = yield* askedFor(viewer, request.query)
  // The page shows what is wrong with the filters.
  if (Either.isLeft(filter)) return yield* show(viewer, request)
  const read = (after: LedgerPlace | undefined) =>
    Effect.map(
      page(reader, chains, filter.right, after, atOnce),
      ({ next, rows }) => [ledgerLines(rows), next] as const
    )
  const words = ["ledger", viewer.owner.mode, given.month, given.kind, given.chain].filter(Boolean)
  return csvReply(words.join("-"), filePieces(ledgerHead, read))
})

export const ledgerRoutes: ReadonlyArray<PortalRoute<Reader | Settings>> = [
  pageRoute(section, "viewer", show),
  pageRoute(`${section}.csv`, "viewer", exported)
]
