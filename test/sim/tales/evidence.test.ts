import { hides, invents, rehashes, shifts, strays, tags } from "../lies.ts"
import {
  ask,
  fail,
  heal,
  lie,
  mine,
  pay,
  reorg,
  see,
  seeExceptions,
  seeHealth,
  seeRows,
  telling,
  wait
} from "../told.ts"

// A single provider out of two or three cannot decide anything about a payment.

const tell = telling()

tell(
  "a receipt that one of two invents, which also gives false hashes of deep blocks, is not decided by it",
  {},
  ask("a", { expiresIn: 900 }),
  // Only after the honest provider has appeared inconsistent several times.
  lie(0, rehashes),
  wait(120),
  lie(0, invents("a", 1_000)),
  wait(300),
  see({ a: /^(pending|detecting 1000)$/ })
)

tell(
  "a receipt that one of two invents is not decided by it once the other, which denied it, is silent",
  {},
  ask("a"),
  lie(0, invents("a", 1_000)),
  wait(60),
  see({ a: "detecting 1000" }),
  fail(1, "gone"),
  wait(240),
  see({ a: "detecting 1000" })
)

for (const liar of [0, 1, 2]) {
  tell(
    `a receipt that one of three, number ${liar}, invents is refuted by two; real money counts`,
    { providers: 3 },
    ask("a", { expiresIn: 120 }),
    lie(liar, invents("a", 1_000)),
    // It serves.
    ...[0, 1].slice(0, liar).map((one) => fail(one, "down", { seconds: 14 })),
    wait(60),
    see({ a: "pending" }),
    pay("a", 1_000),
    wait(40),
    see({ a: "confirmed 1000" })
  )
}

tell(
  "a second provider that responds between failures is asked again within seconds",
  {},
  ask("a", { amount: 9_000, expiresIn: 900 }),
  ...[1, 2, 3, 4, 5, 6, 7, 8].flatMap((round) => [
    fail(1, "down"),
    pay("a", 1_000),
    wait(24),
    heal(1),
    wait(8),
    seeRows("SELECT count(*) AS corroborated FROM receipts WHERE corroborated = 1", { corroborated: round }),
    seeHealth({ unhealthy: {} })
  ])
)

for (const younger of [false, true]) {
  tell(
    `money that one of two withholds is found before the payment ends${younger ? ", with a younger one" : ""}`,
    {},
    ask("a"),
    lie(0, hides("a")),
    lie(0, rehashes),
    pay("a", 1_000),
    wait(20),
    ...(younger ? [ask("b", { expiresIn: 40 })] : []),
    wait(160),
    // One that gives another hash for the block corroborates nothing in it: the payment waits for a third, or a person.
    see({ a: "detecting 1000" })
  )
}

tell(
  "coins that one of two says no address holds are found before the payment ends",
  { chains: ["base"] },
  ask("a", { currency: "ETH" }),
  lie(0, shifts("a", -1_000)),
  pay("a", 1_000),
  wait(180),
  see({ a: "confirmed 1000" })
)

tell(
  "money that one of two withholds is found with the next poll where a block's bloom promises the log",
  {},
  ask("a"),
  lie(0, hides("a", { bloom: false })),
  pay("a", 1_000),
  wait(9),
  see({ a: "detecting 1000" })
)

tell(
  "a branch and a tag of one provider undo no confirmed payment that the other one still has",
  {},
  ask("a"),
  pay("a", 1_000, { as: "paid" }),
  wait(30),
  see({ a: "confirmed 1000" }),
  // Another payment is still open, so that the chain is polled as often.
  ask("open", { expiresIn: 3_600 }),
  // For a moment both are on that branch, or it would not be followed.
  reorg({ from: "paid", without: ["paid"] }),
  wait(6),
  lie(0, strays(0)),
  lie(0, tags),
  pay("a", 1_000, { as: "paid" }),
  reorg({ depth: 5 }),
  // Longer than the patience for a silent provider.
  wait(300),
  see({ a: "confirmed 1000" })
)

for (const way of ["plain", "severalInOne"] as const) {
  tell(
    `two providers that number the logs of a block differently: ${way}, also when the second pass has read both`,
    {},
    ask("a"),
    fail(0, "renumbers", { size: 2 }),
    fail(1, "renumbers", { size: 8 }),
    pay("a", 1_000, { way }),
    wait(8),
    mine(31),
    wait(80),
    see({ a: "confirmed 1000" }),
    seeRows("SELECT count(*) AS receipts FROM receipts", { receipts: way === "plain" ? 1 : 2 }),
    seeExceptions()
  )
}
