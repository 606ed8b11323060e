import { expect } from "@effect/vitest"
import { Clock, Effect, TestClock } from "effect"
import * as LinksRepo from "../../src/Auth/LoginLinksRepo.ts"
import { addLink, makeLink } from "../../src/Auth/loginLinks.ts"
import { disable } from "../../src/Auth/people.ts"
import * as SessionsRepo from "../../src/Auth/SessionsRepo.ts"
import * as NetworksRepo from "../../src/Auth/SignInNetworksRepo.ts"
import { begin, unusedSince } from "../../src/Auth/sessions.ts"
import { newSessionId } from "../../src/Domain/Ids.ts"
import type { Person } from "../../src/Domain/Person.ts"
import type { Reader, Writer } from "../../src/Sql.ts"
import { scopedTest } from "../lib/scopedTest.ts"
import { execute, inTransaction, rows, tempStore } from "../lib/store.ts"
import { portalStore, shop } from "../Portal/room.ts"

// Everything that an account can make the daemon store has an end: it counts towards the account's quota, or there is a
// number of it. The tables, their columns and what is counted are read from the schema, so that a new table or column
// without an answer fails here.

/**
 * Rows of accounts that do not count by themselves, and what limits them. A number of each person does, since an account has
 * 200 people who are not disabled, and of the others nothing is left: see below.
 */
const capped: Readonly<Record<string, string>> = {
  transitions: "at most a few of each payment, which counts them",
  searches: "one of each payment, which counts it",
  lanes: "one of each target that a delivery waits for; the delivery counts it",
  default_secrets: "one of each account and mode",
  shops: "one of each account",
  shop_images: "one of each account, of at most 40 KiB",
  passwords: "one of each person",
  sessions: "20 of each person: test/Auth/peopleCaps.test.ts",
  sign_in_links: "20 of each person: test/Auth/peopleCaps.test.ts",
  sign_in_networks: "20 of each person: test/Portal/password.test.ts",
  rate_windows:
    "one of each key, of each account and mode, and of each limit given to a key, within an hour of its use",
  requests: "a million in all, those of the account with the most go first: test/Housekeeping.test.ts"
}

/** Tables that no account adds rows to. */
const ofOthers: Readonly<Record<string, string>> = {
  accounts: "the operator makes them",
  account_wallets: "the operator gives them to an account",
  wallets: "the operator configures them",
  alerts: "one row of the operator's",
  configuration: "one row of the operator's",
  meta: "a few rows of the daemon's",
  numbering: "one row of the daemon's",
  migrations: "one row of each version of the schema",
  usage: "three rows of each account, which the operator makes",
  scans: "one of each chain",
  tokens: "one of each contract that the operator has configured",
  blocks: "of a chain that the operator configures, however many payments there are",
  balances: "the sender of money pays the chain for it",
  unaccounted: "the sender of money pays the chain for it, and five thousand are read",
  receipts: "the sender of money pays the chain for it",
  payment_senders: "at most one of each receipt",
  collected: "one of each transfer of a broadcast, which the operator makes",
  gas: "one of each transaction of a broadcast, which the operator makes",
  exceptions: "one of each transaction that somebody paid",
  refunds: "a hundred of each payment that somebody paid, with notes of 500 characters",
  refund_parts: "of refunds",
  gap_addresses: "after the restoration of a backup",
  gap_looks: "after the restoration of a backup"
}

/** Why texts of rows of accounts that the schema does not measure are short, and which ones. */
const reasons: Readonly<Record<string, string>> = {
  "an IP network": "sign_in_networks.network",
  "the daemon draws it":
    "id person_id payment_id event_id endpoint_id quote_id invoice_id key_id refund_id rolled_to of_id account_id " +
    "payments.checkout_token invoices.checkout_token",
  "an account's id": "realm",
  "live or test": "mode events.mode",
  "of a fixed size": "hash body_hash salt payments.address payments.tx_hash",
  "sealed, of 300 characters at most": "secret previous_secret",
  "four characters": "api_keys.last_four",
  "at most 78 digits":
    "payments.amount payments.amount_received payments.floor payments.received payments.refunded pull_payments.units",
  "the daemon computes it": "payments.usd_value",
  "one of a list":
    "payments.currency payments.chain payments.failure_reason events.kind idempotent_responses.route " +
    "invoices.currency invoices.language transitions.from_status transitions.to_status searches.chain requests.method requests.error_code",
  "its deliveries count it": "lanes.target",
  "an IP address": "sessions.address",
  "at most 100 characters": "passwords.sign_in_name",
  "one row: at most 60 characters": "shops.name",
  "one row: a colour": "shops.accent",
  "one row: the name of one of the operator's files": "shops.logo",
  "one row: at most 500 characters": "shops.website shops.contact",
  "one row: at most 64 characters": "shops.timezone",
  "one row: one of a list": "shops.currency shops.invoice_refs shops.plugins",
  "at most 40 characters": "invoices.amount pull_payments.amount pull_payments.currency",
  "one row: at most 18 characters": "shops.minimum_usd",
  "one row: one of three names": "shop_images.name",
  "one row: at most 40 KiB, by the schema": "shop_images.bytes",
  "one row: at most 10 origins of 255 characters": "shops.frame_origins",
  "one of a list: parameters are named, not given": "requests.path"
}
const short = new Set(Object.values(reasons).flatMap((names) => names.split(" ")))

const test = scopedTest(tempStore)
const withPeople = scopedTest(portalStore())

interface Statement {
  readonly name: string
  readonly tbl_name: string
  readonly sql: string
}

const ofKind = (kind: "table" | "trigger") =>
  rows<Statement>(
    "SELECT name, tbl_name, sql FROM sqlite_schema WHERE type = ? AND name NOT LIKE 'sqlite_%' ORDER BY name",
    [kind]
  )

/** The triggers that add a row to what is counted, by table. */
const counting = Effect.map(
  ofKind("trigger"),
  (triggers) =>
    new Map(
      triggers
        .filter(({ sql }) => /AFTER INSERT ON/.test(sql) && /UPDATE usage SET bytes = bytes \+/.test(sql))
        .map(({ sql, tbl_name }) => [tbl_name, sql])
    )
)

test("every table is counted, capped, or not made by an account", function* () {
  const counted = yield* counting
  const triggers = yield* ofKind("trigger")
  for (const { name } of yield* ofKind("table")) {
    const answers = [counted.has(name), name in capped, name in ofOthers]
    expect([name, answers.filter(Boolean).length]).toEqual([name, 1])
    // What is counted once is not counted again.
    const isTaken = triggers.some(({ sql, tbl_name }) => tbl_name === name && /AFTER DELETE ON/.test(sql))
    expect([name, isTaken]).toEqual([name, counted.has(name)])
  }
  expect(Array.from(counted.keys()).toSorted()).toEqual(
    [
      ...["api_keys", "attempts", "audit", "deliveries", "endpoints", "events", "idempotent_responses", "payments"],
      ...["invoices", "metadata_terms", "passkeys", "people", "plugin_invoices", "pull_payments", "quotes"]
    ].toSorted()
  )
})

test("every text of an account's rows is measured, or bounded by the schema, or short", function* () {
  const counted = yield* counting
  const used = new Set<string>()
  for (const { name, sql } of yield* ofKind("table")) {
    if (!counted.has(name) && !(name in capped)) continue
    const columns = yield* rows<{ name: string; type: string }>("SELECT name, type FROM pragma_table_info(?)", [name])
    for (const column of columns.filter(({ type }) => type !== "INTEGER")) {
      const isMeasured = counted.get(name)?.includes(`octet_length(NEW.${column.name})`) ?? false
      const isBounded =
        sql.includes(`octet_length(${column.name}) <=`) || new RegExp(`CHECK \\(${column.name} IN \\(`).test(sql)
      const known = [`${name}.${column.name}`, column.name].find((each) => short.has(each))
      if (known !== undefined) used.add(known)
      expect([`${name}.${column.name}`, isMeasured || isBounded || known !== undefined]).toEqual([
        `${name}.${column.name}`,
        true
      ])
    }
  }
  // Every listed reason is needed.
  expect([...short].filter((each) => !used.has(each))).toEqual([])
})

const day = 24 * 60 * 60_000

/** Stores rows of a person, by table: of each that has a person's id. */
const rowsOf: Readonly<Record<string, (person: Person) => Effect.Effect<unknown, unknown, Reader | Writer>>> = {
  passkeys: ({ id }) =>
    execute(
      "INSERT INTO passkeys (id, person_id, name, public_key, counter, created_at) VALUES ('phone', ?, 'phone', randomblob(1), 0, 0)",
      [id]
    ),
  passwords: ({ id }) =>
    execute(
      `INSERT INTO passwords (person_id, realm, sign_in_name, salt, hash, created_at)
       VALUES (?, 'shop', 'ann', randomblob(1), randomblob(1), 0)`,
      [id]
    ),
  sessions: (person) => {
    const visitor = { userAgent: "a", address: "192.0.2.1", network: "192.0.2.1", secret: undefined }
    return inTransaction(begin(person, visitor, newSessionId(), Effect.succeed(undefined)))
  },
  sign_in_links: (person) => inTransaction(addLink(person)),
  sign_in_networks: ({ id }) => inTransaction(NetworksRepo.seen(id, "198.51.100.7", 0))
}

withPeople("a day after a person is disabled no table has rows of theirs", function* () {
  const { person } = yield* makeLink({ name: "Ann", role: "admin", account: shop })
  const tables: Array<string> = []
  for (const { name } of yield* ofKind("table")) {
    const columns = yield* rows<{ name: string }>("SELECT name FROM pragma_table_info(?)", [name])
    if (columns.some((column) => column.name === "person_id")) tables.push(name)
  }
  expect(tables.toSorted()).toEqual(Object.keys(rowsOf).toSorted())
  const left = Effect.forEach(tables, (table) =>
    Effect.map(rows(`SELECT 1 FROM ${table} WHERE person_id = ?`, [person.id]), ({ length }) => [table, length > 0])
  )
  yield* TestClock.setTime(30 * day)
  for (const store of Object.values(rowsOf)) yield* store(person)
  expect(yield* left).toEqual(tables.map((table) => [table, true]))
  yield* disable({ via: "portal", who: "Grace", owner: { account: shop } }, person)
  // What housekeeping does within the hour.
  yield* TestClock.adjust(day + 60 * 60_000)
  const now = yield* Clock.currentTimeMillis
  yield* inTransaction(LinksRepo.forget(now - LinksRepo.memory, 100))
  yield* inTransaction(SessionsRepo.forget(unusedSince(now), 100))
  expect(yield* left).toEqual(tables.map((table) => [table, false]))
})
