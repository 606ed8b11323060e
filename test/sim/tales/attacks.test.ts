import { dates, edits, hides, invents, inventsAnew, lowers, strays } from "../lies.ts"
import { ask, end, fail, heal, lie, mine, pay, repeat, see, seeExceptions, seeHealth, telling, wait } from "../told.ts"

// One provider lies and the others are honest: the payment ends by what the honest ones have.

const tell = telling()

for (const providers of [2, 3]) {
  tell(
    `a false time of its block, by one of ${providers}, does not make money late`,
    { providers },
    ask("a"),
    lie(0, dates(600, 2)),
    pay("a", 1_000),
    wait(120),
    // Of two, neither is believed.
    see({ a: providers === 2 ? "pending" : "confirmed 1000" }),
    end({ a: "confirmed 1000" })
  )

  tell(
    `blocks that one of ${providers} read are not searched by it alone before the end`,
    { providers },
    ask("a", { expiresIn: 15 }),
    lie(
      0,
      edits(/eth_getLogs/, () => [])
    ),
    wait(24),
    pay("a", 1_000),
    wait(8),
    fail(0, "down", { seconds: 5 }),
    wait(120),
    see({ a: "confirmed 1000" })
  )

  tell(
    `a payment that one of ${providers} reports before it was sent is late when it is mined after the deadline`,
    { providers },
    ask("a", { expiresIn: 15 }),
    lie(0, invents("a", 1_000, { as: "signed" })),
    // Of two, neither is believed, and the payment waits for as long as the one lies.
    wait(providers === 2 ? 120 : 8),
    see({ a: "detecting 1000" }),
    heal(0),
    wait(60),
    pay("a", 1_000, { as: "signed" }),
    wait(600),
    see({ a: "expired" }),
    seeExceptions("late 1000 USDC")
  )
}

for (const provider of [0, 1, 2]) {
  for (const by of [-7_200, -1, 1, 600]) {
    tell(
      `block times of provider ${provider} of three that are off by ${by} s keep no payment open`,
      { providers: 3 },
      ask("a", { expiresIn: 15 }),
      lie(provider, dates(by)),
      pay("a", 400),
      wait(90),
      see({ a: "failed insufficient_amount 400" }),
      seeExceptions("underpaid 400 USDC")
    )
  }

  tell(
    `where provider ${provider} of three has a branch of its own, deeper than the confirmations, the others decide`,
    { providers: 3 },
    ask("a"),
    lie(provider, strays(0)),
    wait(7),
    pay("a", 1_000),
    wait(240),
    see({ a: "confirmed 1000" })
  )

  tell(
    `two providers whose chain stands still do not count as silent while provider ${provider} of three goes on`,
    { providers: 3 },
    ask("a", { expiresIn: 600 }),
    ...[0, 1, 2].flatMap((one) => (one === provider ? [] : [fail(one, "stuck")])),
    pay("a", 1_000),
    wait(300),
    see({ a: /^(pending|detecting 1000)$/ }),
    end({ a: "confirmed 1000" })
  )
}

for (const provider of [0, 1]) {
  for (const by of [-1, 600]) {
    tell(
      `a payment waits while provider ${provider} of two has block times that are off by ${by} s`,
      {},
      ask("a", { expiresIn: 15 }),
      lie(provider, dates(by)),
      pay("a", 400),
      wait(120),
      see({ a: /^(pending|detecting 400)$/ }),
      seeHealth({ reason: /disagree about block times/ }),
      heal(),
      wait(60),
      see({ a: "failed insufficient_amount 400" })
    )
  }
}

tell(
  "an invented branch of 900 blocks is dropped once two others have newer heads below it",
  { providers: 3 },
  ask("a", { expiresIn: 200 }),
  lie(0, strays(900)),
  pay("a", 1_000),
  wait(60),
  fail(0, "gone"),
  wait(120),
  see({ a: "confirmed 1000" })
)

tell(
  "money that a liar denies, and for a while also an honest provider on another branch, counts in the end",
  { providers: 3 },
  ask("a"),
  lie(1, strays(0), { seconds: 24 }),
  lie(2, hides("a")),
  pay("a", 1_000),
  wait(120),
  see({ a: "confirmed 1000" })
)

for (const [providers, provider] of [
  [2, 0],
  [2, 1],
  [3, 1],
  [3, 2]
] as const) {
  tell(
    `small transfers that one of ${providers}, at ${provider}, invents again in every response keeps no payment open`,
    { providers },
    ask("a", { amount: 5_000, expiresIn: 15 }),
    wait(25),
    lie(provider, inventsAnew("a", 1)),
    wait(90),
    see({ a: "expired" })
  )
}

for (const [providers, provider] of [
  [2, 0],
  [3, 0],
  [3, 1]
] as const) {
  tell(
    `a block with money that one of ${providers}, at ${provider}, has four blocks lower is not confirmed earlier`,
    { providers },
    ask("a", { expiresIn: 600 }),
    mine(4),
    pay("a", 1_000, { as: "paid" }),
    mine(1),
    lie(provider, lowers("paid", 4)),
    wait(9),
    see({ a: "detecting 1000" }),
    wait(90),
    // It cannot be known which of two is right.
    see({ a: providers === 2 ? "detecting 1000" : "confirmed 1000" })
  )
}

// A serving provider with a branch of its own that is far above everyone's: the others are asked for blocks that they do
// not have. That does not count as silence.

tell(
  "a liar of three with a higher branch undoes no payment that the others have confirmed",
  { providers: 3 },
  ask("a"),
  // The attacker's payment: keeps the chain polled.
  ask("open", { expiresIn: 3_600 }),
  pay("a", 1_000, { as: "paid" }),
  wait(90),
  see({ a: "confirmed 1000" }),
  lie(0, strays(100)),
  wait(180),
  heal(0),
  lie(0, strays(100, 60)),
  ...repeat(10, wait(6), see({ a: "confirmed 1000" })),
  end({ a: "confirmed 1000" })
)

tell(
  "a higher branch that two others do not have is left before a payment ends, and what came on theirs counts",
  { chains: ["base"], providers: 3 },
  ask("paid", { expiresIn: 120 }),
  ask("unpaid", { expiresIn: 120 }),
  wait(30),
  lie(0, strays(100)),
  wait(60),
  pay("paid", 1_000),
  wait(600),
  see({ paid: "confirmed 1000", unpaid: "expired" })
)

tell(
  "a head of one of three far above the others', which then is gone, stops reading for two minutes at most",
  { providers: 3 },
  ask("a", { expiresIn: 600 }),
  wait(10),
  lie(0, strays(100)),
  lie(0, dates(840)),
  wait(6),
  fail(0, "gone"),
  wait(24),
  pay("a", 1_000),
  wait(120),
  see({ a: "confirmed 1000" })
)
