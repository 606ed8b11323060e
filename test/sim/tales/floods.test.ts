import { floods } from "../lies.ts"
import { ask, lie, pay, repeat, see, seeExceptions, telling, wait } from "../told.ts"

// Of thousands of receipts of one payment, real or invented, so many are settled: those that two providers have come first.

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

tell(
  "a payment that gets 1,500 small transfers of coins expires, and none of them is an exception",
  { providers: 3 },
  ask("a", { ...large, expiresIn: 60 }),
  ...repeat(10, ...repeat(150, pay("a", 300_000)), wait(6)),
  wait(240),
  see({ a: "expired" }),
  seeExceptions()
)
