/** What the command `tilld ledger` asks: the rows of an account's ledger, or of all. */
import { Clock, DateTime, Effect, Schema } from "effect"
import { mustExist } from "../Auth/accountOperations.ts"
import { shopOf } from "../Auth/shops.ts"
import { UnknownAccount } from "../Domain/Account.ts"
import { ChainName, chainNames, Mode } from "../Domain/Chain.ts"
import { AccountId } from "../Domain/Ids.ts"
import { LedgerKind, LedgerRow } from "../Domain/LedgerRow.ts"
import { alternatives, must } from "../lib/annotations.ts"
import { csvLine } from "../lib/text.ts"
import { limitField, MomentField, maybe, momentAt, otherwise } from "../Operations/inputFields.ts"
import { operation, withFlag } from "../Operations/operation.ts"
import { Settings } from "../Settings.ts"
import { Reader } from "../Sql/Db.ts"
import * as Repo from "./BooksRepo.ts"

/** A month such as `2026-11`. */
export const Month = must("be a month such as 2026-11", Schema.String.pipe(Schema.pattern(/^\d{4}-(0[1-9]|1[0-2])$/)))

/** When a month begins and ends in a time zone, Unix milliseconds. */
export const monthIn = (month: string, timezone: string): { readonly from: number; readonly until: number } => {
  const [year = 0, number = 1] = month.split("-").map(Number)
  // The clock may be set forward at its first midnight: the day then begins later.
  const first = DateTime.unsafeMakeZoned(
    { year, month: number, day: 1, hours: 12 },
    { timeZone: timezone, adjustForTimeZone: true }
  )
  const start = DateTime.startOf(first, "month")
  return {
    from: DateTime.toEpochMillis(start),
    until: DateTime.toEpochMillis(DateTime.startOf(DateTime.add(first, { months: 1 }), "month"))
  }
}

/** The month of a moment in a time zone. */
export const monthOf = (millis: number, timezone: string): string =>
  DateTime.formatIsoDate(DateTime.unsafeMakeZoned(millis, { timeZone: timezone })).slice(0, 7)

export const OwnedLedgerRow = Schema.Struct({ account: maybe(Schema.String), mode: Mode, ...LedgerRow.fields })

type ShownRow = typeof OwnedLedgerRow.Encoded

const columns = Object.keys(OwnedLedgerRow.fields) as ReadonlyArray<keyof ShownRow>

/** The first line of its files, and those of rows. */
export const ledgerHead = csvLine(columns)
export const ledgerLines = (rows: ReadonlyArray<ShownRow>): string =>
  rows.map((row) => csvLine(columns.map((name) => `${row[name] ?? ""}`))).join("")

export const showLedger = operation({
  name: "ledger",
  summary:
    "Show the ledger, newest first: what came, went back, was collected and paid for gas, with its worth of then",
  input: {
    account: withFlag(maybe(AccountId), {
      about: "Only of this account; otherwise of all, one after another, and then what is of none",
      value: "ID"
    }),
    mode: withFlag(
      otherwise(must("be live or test", Mode), () => "live" as const),
      { about: "live, the default, or test" }
    ),
    month: withFlag(maybe(Month), { about: "Only this month, in the account's time zone", value: "YYYY-MM" }),
    from: withFlag(maybe(MomentField), { about: "Only from this time on", value: "TIME" }),
    until: withFlag(maybe(MomentField), { about: "Only before this time", value: "TIME" }),
    chain: withFlag(maybe(must(`be one of ${chainNames.join(", ")}`, ChainName)), { about: "Only on this chain" }),
    currency: withFlag(maybe(Schema.String), { about: "Only of this currency, such as USDC" }),
    kind: withFlag(maybe(must(`be ${alternatives(LedgerKind.literals)}`, LedgerKind)), { about: "Only of this kind" }),
    payment: withFlag(maybe(Schema.String), { about: "Only of this payment", value: "ID" }),
    after: maybe(Schema.String),
    limit: limitField(1000)
  },
  output: Schema.Struct({ rows: Schema.Array(OwnedLedgerRow), next: maybe(Schema.String) }),
  refusals: [UnknownAccount],
  check: ({ from, month, until }) =>
    month !== undefined && (from ?? until) !== undefined ? "Give either a month, or from and until" : undefined,
  run: Effect.fnUntraced(function* ({ account, after = "", from, limit, month, until, ...filter }) {
    if (account !== undefined) yield* mustExist(account)
    const reader = yield* Reader
    const { chains } = yield* Settings
    const now = yield* Clock.currentTimeMillis
    const [afterAccount = "", afterPlace = ""] = after.split(".")
    const accounts = account === undefined ? yield* Repo.accountsFrom(reader, afterAccount) : [account]
    const rows: Array<typeof OwnedLedgerRow.Type> = []
    let place = Repo.placeIn(afterPlace)
    for (const [i, one] of accounts.entries()) {
      const timezone = one === undefined ? "UTC" : (yield* shopOf(reader, one)).timezone
      const between = {
        ...(month === undefined ? {} : monthIn(month, timezone ?? "UTC")),
        ...(from === undefined ? {} : { from: momentAt(from, now) }),
        ...(until === undefined ? {} : { until: momentAt(until, now) })
      }
      const page = yield* Repo.page(reader, chains, { ...filter, ...between, account: one }, place, limit - rows.length)
      rows.push(...page.rows)
      // No id of an account sorts behind the tilde.
      if (page.next !== undefined) return { rows, next: `${one ?? "~"}.${Repo.placeText(page.next)}` }
      if (rows.length === limit && i < accounts.length - 1) return { rows, next: `${accounts[i + 1] ?? "~"}.` }
      place = undefined
    }
    return { rows }
  })
})
