import { edits, floods, hides, invents, lags } from "../lies.ts"
import { ask, fail, heal, lie, mine, pay, repeat, see, seeExceptions, seeHealth, telling, wait } from "../told.ts"

// The effect of one of three on the others, and on the requests to them.

const tell = telling()

tell(
  "one of three that is slow in each call, with blocks that take hundreds of them, stops nothing",
  { chains: ["base"], providers: 3 },
  ask("paid", { expiresIn: 900 }),
  ask("unpaid", { expiresIn: 120 }),
  fail(1, "slow"),
  lie(1, floods("unpaid", 8_000, 1)),
  lie(
    1,
    edits(/eth_getLogs/, () => Array.from({ length: 1_000 }, () => ({})))
  ),
  lie(
    1,
    edits(/eth_getBlockReceipts/, () => "0x")
  ),
  wait(60),
  pay("paid", 1_000),
  wait(300),
  see({ paid: "confirmed 1000", unpaid: "expired" })
)

tell(
  "one of three contradicts no provider while the third one limits calls",
  { providers: 3 },
  ask("a", { expiresIn: 600 }),
  fail(2, "down"),
  lie(
    1,
    edits(/eth_getTransactionReceipt/, () => null)
  ),
  lie(
    1,
    edits(/eth_getBlockBy/, (block) => block && { ...block, transactions: [] })
  ),
  pay("a", 100),
  wait(30),
  ...repeat(3, pay("a", 100), wait(6)),
  wait(30),
  heal(),
  wait(120),
  seeHealth({ unhealthy: {} })
)

tell(
  "a provider that shows refuted coins again is contradicted again, and keeps no payment open",
  { providers: 3 },
  ask("bait", { currency: "ETH", amount: 10_000, expiresIn: 20_000 }),
  ask("victim", { currency: "ETH", expiresIn: 4_000 }),
  lie(0, invents("bait", 1_000)),
  wait(3_840),
  fail(1, "down", { seconds: 30 }),
  mine(50),
  wait(600),
  see({ victim: "expired" }),
  seeHealth({ unhealthy: { 0: /./ } })
)

tell(
  "late coins that the serving one of three hides are found by others that have each block a moment later",
  { providers: 3, traits: { traces: false } },
  ask("a", { currency: "ETH", expiresIn: 15 }),
  wait(60),
  see({ a: "expired" }),
  lie(0, hides("a")),
  lie(1, lags),
  lie(2, lags),
  pay("a", 300, { way: "insideHidden" }),
  wait(3_600),
  seeExceptions("late 300 ETH")
)
