import { floods } from "../lies.ts"
import { ask, lie, mine, pay, repeat, see, seeExceptions, telling, wait } from "../told.ts"

// Thousands of receipts of one payment, real or invented, are dust, which is settled as sums: they are asked about too.

const tell = telling()
const large = { amount: 50_000_000, currency: "ETH" } as const

for (const providers of [2, 3]) {
  tell(
    `2,100 invented transfers of one of ${providers} hold no payment open`,
    { providers },
    ask("a", { amount: 50_000_000 }),
    lie(0, floods("a", 2_100, 600_000), { seconds: 60 }),
    wait(240),
    see({ a: "expired" })
  )
}

tell(
  "coins in full count beyond thousands that one of three invents",
  { providers: 3 },
  ask("a", { ...large, expiresIn: 120 }),
  lie(0, floods("a", 2_500, 600_000), { seconds: 13 }),
  wait(13),
  pay("a", 50_000_000),
  wait(90),
  see({ a: "confirmed 50000000" })
)

tell(
  "late coins are in an exception beyond a thousand that one of three invents",
  { providers: 3 },
  ask("a", { ...large, expiresIn: 15 }),
  wait(90),
  lie(0, floods("a", 1_100, 600_000), { seconds: 300 }),
  wait(300),
  pay("a", 50_000_000),
  wait(24_000),
  seeExceptions("late 50000000 ETH")
)

for (const [count, ends, exception] of [
  [2_500, "confirmed 51000000", "overpaid 1000000 ETH"],
  [1_500, "failed insufficient_amount 45000000", "underpaid 45000000 ETH"]
] as const) {
  tell(
    `a payment that gets ${count} transactions of coins, of three providers: ${ends}`,
    { providers: 3 },
    ask("a", { ...large, expiresIn: 120 }),
    ...repeat(10, ...repeat(count / 10, pay("a", 30_000)), wait(6)),
    wait(240),
    see({ a: ends }),
    seeExceptions(exception)
  )
}

tell(
  "small late coins are one exception, of three providers as of one",
  { providers: 3 },
  ask("a", { ...large, expiresIn: 15 }),
  wait(90),
  see({ a: "expired" }),
  ...repeat(40, pay("a", 30_000), mine(1)),
  wait(7_200),
  seeExceptions("late 1200000 ETH")
)
