import { Duration, Predicate } from "effect"
import { dates, edits, invents, strays, tags } from "../lies.ts"
import {
  ask,
  end,
  fail,
  heal,
  lie,
  mine,
  pay,
  repeat,
  restart,
  see,
  seeExceptions,
  seeHealth,
  seeRows,
  type Told,
  telling,
  wait
} from "../told.ts"

// A single provider does not determine time and depth.

const tell = telling()

for (const providers of [1, 2, 3]) {
  tell(
    `block times a day ahead, of the serving one of ${providers}, end no payment`,
    { providers },
    ask("a", { expiresIn: 600 }),
    lie(0, dates(86_400)),
    wait(120),
    see({ a: "pending" }),
    // The chain is read from another provider, or not at all without one; the reason names both possible causes.
    seeHealth(
      providers > 1
        ? { ready: true }
        : { ready: false, reason: /ahead of this machine's clock: one of the two is wrong. Remedy: let chrony/ }
    )
  )
}

tell(
  "block times a day ahead, of every provider, show that this machine's clock is behind: payments do not end",
  {},
  ask("before"),
  lie(0, dates(86_400)),
  lie(1, dates(86_400)),
  pay("before", 1_000),
  wait(40),
  seeHealth({ reason: /this machine's clock is .* behind the chain's: payments do not end/ }),
  // One that is made since counts by the chain's time: it is paid in time.
  ask("since"),
  pay("since", 1_000),
  wait(40),
  see({ since: "confirmed 1000" }),
  wait(120),
  // Made before the clock was known to be wrong: its money is late by the chain's time, and the payment does not end by it.
  see({ before: "pending" })
)

/** Only the newest block is dated later. */
const early = edits(/eth_getBlockByNumber/, (block, { params: [of] }) =>
  of === "latest" && Predicate.isRecord(block)
    ? { ...block, timestamp: `0x${(Number(block.timestamp) + 600).toString(16)}` }
    : block
)

for (const liar of [0, 1]) {
  tell(
    `heads of provider ${liar} of two that are 10 minutes ahead give payments no longer time`,
    {},
    lie(liar, early),
    wait(20),
    ask("a"),
    pay("a", 100),
    wait(60),
    ask("b"),
    seeRows("SELECT max(coalesce(due_at, expires_at) - expires_at) < 6000 AS brief FROM payments", { brief: 1 })
  )
}

tell(
  "depth is measured from the lower of two heads: twenty blocks that one provider claims confirm nothing",
  {},
  ask("a"),
  pay("a", 1_000),
  wait(6),
  lie(0, strays(20)),
  wait(9),
  see({ a: "detecting 1000" }),
  end({ a: "confirmed 1000" })
)

tell(
  "depth is measured from the lower of two heads: no payment ends by blocks that one provider claims",
  {},
  ask("a", { expiresIn: 15 }),
  wait(41),
  lie(0, strays(3)),
  wait(9),
  see({ a: "pending" }),
  seeHealth({ reason: /the head of \S+ is still block/ }),
  end({ a: "expired" })
)

tell(
  "depth is waited for, however long the other one lags, which also fails now and then",
  {},
  ask("a", { expiresIn: 15 }),
  fail(1, "behind", { size: 25 }),
  ...repeat(6, wait(25), fail(1, "down", { seconds: 10 })),
  see({ a: "pending" }),
  heal(1),
  wait(60),
  see({ a: "expired" })
)

tell(
  "depth is counted for each provider: a third one with the block, but not its confirmations, completes no quorum",
  { providers: 3 },
  ask("a", { expiresIn: 15 }),
  fail(1, "refusesLogs"),
  fail(2, "behind", { size: 2 }),
  wait(60),
  see({ a: "pending" }),
  wait(30),
  see({ a: "expired" })
)

tell(
  "a tag that a policy requires counts at the lower of two: one alone does not confirm",
  { requires: "finalized" },
  ask("a"),
  lie(0, tags),
  pay("a", 1_000),
  wait(8),
  mine(4),
  wait(6),
  see({ a: "detecting 1000" }),
  mine(10),
  wait(20),
  see({ a: "confirmed 1000" })
)

tell(
  "a tag that a policy requires counts of a sole provider after its patience",
  { requires: "finalized" },
  ask("a", { expiresIn: 600 }),
  fail(1, "gone"),
  pay("a", 1_000),
  wait(8),
  mine(12),
  wait(40),
  see({ a: "detecting 1000" }),
  wait(60),
  see({ a: "confirmed 1000" })
)

// How long other providers have been silent, and what the only one that responds decides then.

for (const [meanwhile, steps] of [
  ["the chain stands still", [fail(0, "stuck"), fail(1, "stuck"), wait(200), heal()]],
  ["the process is stopped", [restart(900)]]
] as const) {
  tell(
    `a provider that was not asked is not silent while ${meanwhile}`,
    {},
    ask("a", { expiresIn: 3_600 }),
    pay("a", 1_000),
    wait(9),
    see({ a: "detecting 1000" }),
    ...steps,
    // It starts to fail when the receipt has its confirmations.
    fail(1, "gone"),
    mine(3),
    wait(30),
    see({ a: "detecting 1000" }),
    wait(60),
    see({ a: "confirmed 1000" })
  )
}

tell(
  "a payment whose time is over while the other provider is gone ends once that one has no money for it either",
  { patience: Duration.minutes(10) },
  ask("a", { expiresIn: 15 }),
  fail(1, "gone"),
  wait(180),
  see({ a: "pending" }),
  heal(1),
  wait(30),
  see({ a: "expired" })
)

const patience = Duration.minutes(2)
tell(
  "a payment whose time is over ends once the other provider has been gone for the patience",
  { patience },
  ask("a", { expiresIn: 15 }),
  fail(1, "gone"),
  wait(100),
  see({ a: "pending" }),
  wait(120),
  see({ a: "expired" })
)

tell(
  "a payment ends at once where the other provider has been gone for the patience",
  { patience },
  ask("a", { expiresIn: 200 }),
  fail(1, "gone"),
  wait(210),
  see({ a: "pending" }),
  wait(45),
  see({ a: "expired" })
)

tell(
  "a provider that decides alone does not do so on a transaction of which it denies another transfer itself",
  {},
  ask("a", { amount: 2_000, expiresIn: 600 }),
  lie(
    0,
    edits(/eth_getLogs/, (logs) => (logs as ReadonlyArray<object>).flatMap((log) => [log, { ...log, logIndex: "0x7" }]))
  ),
  pay("a", 1_000),
  wait(9),
  fail(1, "gone"),
  wait(150),
  see({ a: "detecting 2000" })
)

// What is too small to be credited decides nothing, whoever reports it.

for (const [title, ...steps] of [
  ["one of two has invented it", lie(0, invents("a", 1))],
  ["both have it", pay("a", 1), pay("a", 2)],
  [
    "the serving one leaves out its log",
    lie(
      0,
      edits(/eth_getLogs/, () => [])
    ),
    pay("a", 1)
  ]
] as ReadonlyArray<readonly [title: string, ...steps: ReadonlyArray<Told>]>) {
  tell(
    `a payment with only a small transfer expires, without an exception: ${title}`,
    { providers: 2 },
    ask("a", { amount: 5_000, expiresIn: 15 }),
    wait(24),
    ...steps,
    wait(120),
    see({ a: "expired" }),
    seeExceptions()
  )
}

tell(
  "a payment with only a small transfer in coins expires",
  {},
  ask("a", { amount: 5_000, currency: "ETH", expiresIn: 15 }),
  pay("a", 1),
  wait(90),
  see({ a: "expired" }),
  seeExceptions()
)

for (const [currency, providers] of [
  ["USDC", 1],
  ["USDC", 2],
  ["ETH", 2]
] as const) {
  tell(
    `a small transfer in ${currency} completes a payment, of ${providers} providers, and one before it and after it does not`,
    { providers },
    ask("a", { amount: 5_000, currency }),
    ...[4_980, 19, 20, 21, 3].map((amount) => pay("a", amount)),
    wait(60),
    see({ a: "confirmed 5000" }),
    seeExceptions()
  )
}

tell(
  "a small transfer that only the serving one of two has confirms nothing",
  { providers: 2 },
  ask("a", { amount: 5_000 }),
  pay("a", 4_980),
  wait(9),
  lie(0, invents("a", 20)),
  wait(60),
  see({ a: "detecting 5000" })
)
