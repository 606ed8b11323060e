import { Duration } from "effect"
import { blockAt } from "../Block.ts"
import { lie as lieOf } from "../Lie.ts"
import { dates, edits, strays } from "../lies.ts"
import { Refusal } from "../node.ts"
import {
  ask,
  collect,
  end,
  fail,
  heal,
  lie,
  mine,
  pay,
  reorg,
  repeat,
  restart,
  see,
  seeHealth,
  seeRows,
  setClock,
  type ToldLie,
  telling,
  wait
} from "../told.ts"

// What the watcher makes of tags, heads, reorgs and clocks.

const tell = telling()
const base = { chains: ["base"] } as const

/** The node refuses calls of these methods. */
const refuses = (method: RegExp, which: (params: ReadonlyArray<unknown>) => boolean = () => true) =>
  edits(method, (result, { params }) => {
    if (which(params)) throw new Refusal("not here")
    return result
  })
const withoutTag = refuses(/^eth_getBlockByNumber$/, ([tag]) => tag === "finalized")
const withoutBalances = refuses(/^eth_(getBalance|call)$/)

const final = { ...base, requires: "finalized", patience: Duration.minutes(2) } as const
for (const [which, providers, others] of [
  ["the other one of two", 2, [0]],
  ["the serving one of three", 3, [1, 2]],
  ["the second one of three", 3, [0, 2]],
  ["the last one of three", 3, [0, 1]]
] as const) {
  tell(
    `a required tag that only ${which} providers reports counts after the patience`,
    { ...final, providers },
    ...others.map((by) => lie(by, withoutTag)),
    ask("a", { expiresIn: 600 }),
    pay("a", 1_000),
    wait(90),
    see({ a: "detecting 1000" }),
    seeHealth({ ready: true, reason: /only one provider reports the tag "finalized".*Remedy: .*rpc_urls/ }),
    wait(75),
    see({ a: "confirmed 1000" }),
    seeHealth({ reason: undefined })
  )
}

tell(
  "a required tag that two providers report by turns counts for neither",
  final,
  ask("a", { expiresIn: 900 }),
  pay("a", 1_000),
  ...[0, 1, 0, 1].flatMap((by) => [lie(by, withoutTag, { seconds: 81 }), wait(80), see({ a: "detecting 1000" })]),
  lie(0, withoutTag),
  wait(150),
  see({ a: "confirmed 1000" })
)

tell(
  "the patience with a tag begins anew each time that a second provider reports it too",
  final,
  ask("a", { expiresIn: 900 }),
  pay("a", 1_000),
  lie(1, { says: "tags an old block", make: () => lieOf({ tag: () => 1 }) }),
  ...[1, 2, 3].flatMap(() => [
    lie(1, withoutTag, { seconds: 100 }),
    wait(99),
    see({ a: "detecting 1000" }),
    wait(31),
    see({ a: "detecting 1000" })
  ]),
  lie(1, withoutTag),
  wait(150),
  see({ a: "confirmed 1000" })
)

tell(
  "a required tag that the other provider does not report, being silent, counts after the patience",
  final,
  fail(1, "down"),
  ask("a", { expiresIn: 600 }),
  pay("a", 1_000),
  wait(90),
  see({ a: "detecting 1000" }),
  wait(75),
  see({ a: "confirmed 1000" })
)

const halfPace: ToldLie = {
  says: "moves at half the pace",
  make: ({ next }) => lieOf({ head: (real) => blockAt(real, next + Math.floor((real.number - next) / 2)) ?? real })
}
tell(
  "a serving provider whose head moves at half the pace goes into cooldown once it lags by two minutes",
  base,
  ask("a", { expiresIn: 900 }),
  lie(0, halfPace),
  wait(200),
  seeHealth({ unhealthy: {} }),
  wait(100),
  pay("a", 1_000),
  wait(30),
  see({ a: "detecting 1000" }),
  end({ a: "confirmed 1000" })
)

tell(
  "a head that a provider reports 2,000 blocks above the chain's is not read",
  base,
  ask("a"),
  lie(0, strays(2_000)),
  pay("a", 1_000),
  wait(30),
  see({ a: "detecting 1000" }),
  end({ a: "confirmed 1000" })
)

// A head too high by fewer blocks than are checked with another provider is read: it only delays payments.
const dated = [lie(0, dates(840)), wait(10)]
for (const [what, providers, ahead, ...does] of [
  ["goes away", 2, 200, fail(0, "down")],
  ["is right again", 2, 900, heal(0)]
] as const) {
  tell(
    `a provider that invents empty blocks and then ${what}, one of ${providers}, ends no payment, and money counts`,
    { ...base, providers },
    ask("before", { expiresIn: 300 }),
    lie(0, strays(ahead)),
    ...dated,
    ask("behind", { expiresIn: 300 }),
    pay("before", 1_000),
    pay("behind", 1_000),
    wait(10),
    ...does,
    ...repeat(
      10,
      wait(60),
      see({ before: /^(pending|detecting|confirmed)/, behind: /^(pending|detecting|confirmed)/ })
    ),
    // The provider that is left may show the real blocks only once the chain has reached the invented height.
    mine(ahead),
    wait(60),
    see({ before: "confirmed 1000", behind: "confirmed 1000" })
  )
}

tell(
  "a serving provider that keeps inventing empty blocks, one of two, is reported, and ends no payment",
  base,
  ask("a", { expiresIn: 60 }),
  lie(0, strays(900)),
  ...dated,
  wait(900),
  see({ a: "pending" }),
  seeHealth({ reason: /^payments wait before they end/ })
)

tell(
  "a provider that starts to serve another chain goes into cooldown, and the other one serves",
  base,
  ask("a"),
  wait(5),
  fail(0, "wrongChain"),
  pay("a", 1_000),
  wait(25),
  seeHealth({ unhealthy: { 0: /serves chain \d+, and chains\.base\.test is chain/ } }),
  see({ a: "detecting 1000" }),
  end({ a: "confirmed 1000" })
)

tell(
  "a branch of one provider's in place of final blocks is refused while another is silent and a third has the old ones",
  { ...base, providers: 3 },
  ask("a", { expiresIn: 900 }),
  pay("a", 500),
  wait(40),
  see({ a: "detecting 500" }),
  fail(1, "down"),
  lie(0, strays(1, 16)),
  wait(30),
  seeHealth({ unhealthy: { 0: /inconsistent/, 1: /./ } }),
  wait(60),
  see({ a: "detecting 500" })
)

tell(
  "a reorg of final blocks is followed once no other provider responds for the patience",
  base,
  ask("a", { expiresIn: 900 }),
  pay("a", 500, { as: "undone" }),
  wait(40),
  see({ a: "detecting 500" }),
  fail(1, "down"),
  reorg({ from: "undone", without: ["undone"] }),
  wait(40),
  see({ a: "detecting 500" }),
  wait(60),
  see({ a: "pending" })
)

const announced = (...kinds: ReadonlyArray<string>) =>
  seeRows("SELECT kind FROM events ORDER BY sequence", ...kinds.map((kind) => ({ kind: `payment.${kind}` })))

tell(
  "a reorg that is longer than the block range is one commit, and announces nothing",
  base,
  ask("a", { expiresIn: 600 }),
  pay("a", 500, { as: "moved" }),
  wait(60),
  see({ a: "detecting 500" }),
  fail(0, "rangeLimit", { size: 2 }),
  fail(1, "rangeLimit", { size: 2 }),
  reorg({ from: "moved", grows: 2 }),
  wait(60),
  announced("created", "detecting"),
  see({ a: "detecting 500" })
)

tell(
  "coins that a reorg mines again below their payment's first block count, and announce nothing",
  base,
  wait(9),
  ask("a", { currency: "ETH", expiresIn: 600 }),
  pay("a", 500),
  wait(15),
  see({ a: "detecting 500" }),
  reorg({ depth: 10 }),
  wait(30),
  see({ a: "detecting 500" }),
  announced("created", "detecting")
)

tell(
  "a reorg is followed even if the balances after it cannot be read",
  base,
  ask("a", { currency: "ETH", expiresIn: 600 }),
  pay("a", 500, { as: "undone" }),
  wait(12),
  see({ a: "detecting 500" }),
  ...[0, 1].map((by) => lie(by, withoutBalances)),
  reorg({ from: "undone", without: ["undone"] }),
  wait(15),
  see({ a: "pending" })
)

tell(
  "coins that a reorg mines again below their open payment's creation are found, though no balance was read then",
  { ...base, providers: 1 },
  wait(9),
  ask("a", { currency: "ETH", expiresIn: 600 }),
  pay("a", 500),
  wait(30),
  see({ a: "detecting 500" }),
  lie(0, withoutBalances, { seconds: 20 }),
  reorg({ depth: 16 }),
  wait(60),
  see({ a: "detecting 500" })
)

/** Wei: the fee of what collects them is less. */
const more = 10 ** 15
tell(
  "coins that are mined again by a reorg are found although their owner collects them at once",
  base,
  ask("a", { currency: "ETH", amount: more }),
  pay("a", more, { as: "paid" }),
  wait(30),
  see({ a: `confirmed ${more}` }),
  reorg({ from: "paid", grows: 2 }),
  collect("a"),
  wait(60),
  see({ a: `confirmed ${more}` })
)

const slow = setClock(-840)
for (const [when, ...before] of [["after"], ["before", fail(0, "down"), fail(1, "down"), restart()]] as const) {
  tell(
    `a payment made ${when} the first poll, by a clock 14 minutes slow, has exactly its time, and is paid in it at the end`,
    base,
    slow,
    ...before,
    ask("a"),
    ask("paid"),
    ...before.slice(0, 1).map(() => heal()),
    wait(45),
    pay("paid", 1_000),
    wait(15),
    see({ a: "pending", paid: /1000$/ }),
    // The grace, and the confirmations.
    wait(45),
    see({ a: "expired", paid: "confirmed 1000" })
  )
}

tell(
  "after a restart, only payments that the present run has made by its slow clock get more time",
  base,
  ask("earlier", { expiresIn: 600 }),
  slow,
  fail(0, "down"),
  fail(1, "down"),
  restart(),
  ask("later", { expiresIn: 600 }),
  heal(),
  wait(15),
  seeRows(
    "SELECT (due_at - expires_at) / 60000 AS minutes FROM payments ORDER BY sequence",
    { minutes: null },
    { minutes: 13 }
  )
)

tell(
  "when the clock is set back before the first poll, a payment gets its own time from the head on, or keeps its deadline",
  base,
  fail(0, "down"),
  fail(1, "down"),
  restart(),
  setClock(-60),
  ask("before the head's time"),
  setClock(60),
  ask("after it"),
  slow,
  heal(),
  wait(15),
  seeRows("SELECT (due_at - expires_at) / 45000 AS more FROM payments ORDER BY sequence", { more: 1 }, { more: null })
)
