import { Duration } from "effect"
import { lie as lieOf } from "../Lie.ts"
import { edits } from "../lies.ts"
import { planOf } from "../payWays.ts"
import { contractOf } from "../plans.ts"
import { ask, fail, heal, lie, mine, pay, see, seeHealth, seeRows, type ToldLie, telling, wait } from "../told.ts"
import { word } from "../transactions.ts"

// Money that one provider has reported, until a second one has it too, one decides alone, or deep blocks are read again.

const tell = telling()
const base = { chains: ["base"] } as const
const long = { expiresIn: 3_600 }
const withoutReceipts = edits(/^eth_getTransactionReceipt$/, () => null)

tell(
  "money waits for a second provider until one decides alone, as health says, then for none until another is back",
  base,
  ask("a", long),
  ask("b", long),
  ask("c", long),
  fail(1, "down"),
  pay("a", 1_000),
  wait(45),
  see({ a: "detecting 1000" }),
  seeHealth({ alone: false, reason: /payments wait for one \(1\), each for/ }),
  wait(60),
  see({ a: "confirmed 1000" }),
  seeHealth({
    alone: true,
    reason: /one provider decides alone: .* since \S+Z; payments that waited for one: 1\. Remedy/,
    unhealthy: { 1: /unreachable/ }
  }),
  pay("b", 1_000),
  wait(20),
  see({ b: "confirmed 1000" }),
  heal(),
  wait(90),
  seeHealth({ alone: false, reason: undefined }),
  fail(1, "down"),
  pay("c", 1_000),
  wait(30),
  see({ c: "detecting 1000" })
)

tell(
  "money is decided once one decides alone, however long it has waited",
  { ...base, patience: Duration.minutes(2) },
  ask("a", long),
  lie(1, withoutReceipts),
  fail(1, "emptyLogs"),
  pay("a", 1_000),
  // It is asked about after 8.5 minutes, and after 17.
  wait(540),
  see({ a: "detecting 1000" }),
  fail(1, "down"),
  wait(90),
  see({ a: "detecting 1000" }),
  wait(150),
  see({ a: "confirmed 1000" })
)

tell(
  "one that has decided alone on an idle chain no longer does once another one is back",
  base,
  ask("a"),
  fail(1, "down"),
  pay("a", 1_000),
  wait(120),
  see({ a: "confirmed 1000" }),
  seeHealth({ alone: true }),
  heal(),
  wait(300),
  seeHealth({ alone: false, reason: undefined })
)

for (const [title, before] of [
  ["below the receipt's block", 0],
  ["at the receipt's block, which has no confirmations", 1]
] as const) {
  tell(
    `a node that has stopped ${title} gets a cooldown, and delays no receipt forever`,
    base,
    ask("a", long),
    wait(3),
    ...(before === 0 ? [fail(1, "stuck"), pay("a", 1_000), wait(3)] : [pay("a", 1_000), mine(1), fail(1, "stuck")]),
    wait(30),
    see({ a: "detecting 1000" }),
    wait(300),
    see({ a: "confirmed 1000" })
  )
}

tell(
  "coins wait where the other provider has their transaction with more",
  { chains: ["ethereum"] },
  ask("a", { ...long, currency: "ETH" }),
  lie(
    0,
    edits(/^eth_getBlockByNumber$|ByHash$/, (one) => JSON.parse(JSON.stringify(one).replaceAll('"0x3e8"', '"0x64"')))
  ),
  pay("a", 1_000),
  wait(60),
  seeRows("SELECT amount, corroborated, denied_by IS NULL AS undenied FROM receipts WHERE amount = '100'", {
    amount: "100",
    corroborated: 0,
    undenied: 0
  })
)

const bridged = contractOf(planOf("polygon"), "USDC.e")
for (const [of, edit, found] of [
  ["amount", { data: word(100n) }, { amount: "100", currency: "USDC" }],
  ["token", { address: bridged }, { amount: "1000", currency: "USDC.e" }]
] as const) {
  tell(
    `a receipt whose ${of} is wrong is refuted by two, and counts as others have it`,
    { chains: ["polygon"] },
    ask("a", long),
    lie(
      0,
      edits(/^eth_getLogs$/, (logs) => (logs as ReadonlyArray<object>).map((log) => ({ ...log, ...edit })))
    ),
    pay("a", 1_000),
    wait(150),
    seeRows(
      "SELECT amount, currency, corroborated, canonical, refuted FROM receipts ORDER BY canonical",
      { ...found, corroborated: 0, canonical: 0, refuted: 1 },
      { amount: "1000", currency: "USDC", corroborated: 1, canonical: 1, refuted: 0 }
    )
  )
}

const oldTag: ToldLie = { says: "has old tags", make: () => lieOf({ tag: () => 1 }) }
for (const [title, ...happens] of [
  ["also when another one serves by then", fail(0, "down", { seconds: 6 })],
  ["long before a tag makes its block final", lie(0, oldTag)],
  ["by one that takes fewer blocks at once", fail(1, "rangeLimit", { size: 3 }), mine(40)]
] as const) {
  tell(
    `what the serving provider left out is found when deep blocks are read again, ${title}`,
    base,
    ask("a", long),
    fail(0, "emptyLogs"),
    pay("a", 1_000),
    wait(6),
    see({ a: "pending" }),
    ...happens,
    wait(90),
    see({ a: "confirmed 1000" })
  )
}

tell(
  "what was left out in any of many blocks that become deep at once is found",
  { ...base, providers: 1 },
  ask("a", { ...long, amount: 600 }),
  fail(0, "emptyLogs"),
  // Three times the block range.
  ...[100, 200, 300].flatMap((amount) => [pay("a", amount), mine(99)]),
  mine(40),
  wait(20),
  see({ a: "pending" }),
  heal(),
  wait(75),
  see({ a: "confirmed 600" })
)
