import { empties, hides, holdsAnew, renames, shifts } from "../lies.ts"
import {
  ask,
  collect,
  fail,
  heal,
  lie,
  mine,
  pay,
  see,
  seeExceptions,
  seeHealth,
  seeRows,
  telling,
  wait
} from "../told.ts"

// One provider lies about coins and the others are honest: only what the honest ones have counts.

const tell = telling()

/** Coins of which no transaction is known. */
const inside = { way: "insideHidden" } as const
const traits = { traces: false }
const corroborated = "SELECT amount FROM receipts WHERE canonical = 1 AND corroborated = 1"
/** The chain stands still. */
const stands = (providers = 2) => [0, 1, 2].slice(0, providers).map((one) => fail(one, "stuck"))
const others = (providers: number, liar: number) => [0, 1, 2].filter((one) => one < providers && one !== liar)

tell(
  "coins that the serving one of three reports with a false transaction are found with the right one",
  { providers: 3 },
  ask("a", { currency: "ETH" }),
  lie(0, renames("a")),
  pay("a", 1_000),
  wait(90),
  see({ a: "confirmed 1000" })
)

for (const providers of [2, 3]) {
  tell(
    `coins that one of ${providers} reports while the others lag are not corroborated by it once another one serves`,
    { providers, traits },
    ask("a", { currency: "ETH" }),
    mine(20),
    lie(0, shifts("a", 300)),
    ...others(providers, 0).map((one) => fail(one, "stuck", { seconds: 60 })),
    wait(40),
    see({ a: "detecting 300" }),
    wait(21),
    fail(0, "down", { seconds: 5 }),
    wait(90),
    see({ a: providers === 2 ? /^(pending|detecting 300)$/ : "expired" }),
    seeRows(corroborated)
  )

  tell(
    `coins are not counted twice because of an intermediate state that one of ${providers} invents`,
    { providers, traits },
    ask("a", { currency: "ETH", expiresIn: 150 }),
    pay("a", 200, inside),
    wait(60),
    lie(0, empties("a")),
    mine(1),
    wait(60),
    fail(0, "down", { seconds: 5 }),
    wait(120),
    see({ a: "failed insufficient_amount 200" }),
    seeRows(corroborated, { amount: "200" })
  )
}

tell(
  "coins without a transaction are shown by the serving one and the third one where the second has no states",
  { providers: 3, traits },
  ask("a", { currency: "ETH", amount: 1e15 }),
  fail(1, "pruned", { size: 3 }),
  fail(2, "pruned", { size: 3 }),
  pay("a", 3e14, inside),
  wait(10),
  collect("a"),
  wait(80),
  see({ a: "detecting 300000000000000" }),
  heal(2),
  wait(60),
  see({ a: "failed insufficient_amount 300000000000000" })
)

for (const liar of [0, 1]) {
  tell(
    `coins without a transaction do not grow where one of two, at ${liar}, reports more when payments end`,
    { traits },
    ask("a", { currency: "ETH", expiresIn: 15 }),
    wait(25),
    pay("a", 300, inside),
    wait(12),
    lie(liar, shifts("a", 100, 3)),
    mine(5),
    ...stands(),
    wait(90),
    see({ a: /^detecting [34]00$/ }),
    seeRows(corroborated, ...(liar === 0 ? [{ amount: "300" }] : []))
  )

  const shownToTheEnd = [
    ask("a", { currency: "ETH", expiresIn: 15 }),
    wait(33),
    lie(liar, shifts("a", 300, 2)),
    wait(30),
    see({ a: "detecting 300" })
  ]
  tell(
    `coins that one of two, at ${liar}, shows in the block in which payments end do not end it`,
    { traits },
    ...shownToTheEnd,
    wait(60),
    see({ a: /^(pending|detecting 300)$/ }),
    seeRows(corroborated)
  )

  tell(
    `coins that one of two, at ${liar}, shows do not count once the other one has pruned those states`,
    { traits },
    ...shownToTheEnd,
    mine(20),
    fail(1 - liar, "pruned", { size: 10 }),
    wait(120),
    see({ a: "expired" }),
    seeExceptions("unattributed 300 ETH")
  )

  tell(
    `coins that one of two, at ${liar}, shows do not count by the other one alone, which has pruned those states`,
    { traits },
    ...shownToTheEnd,
    mine(20),
    fail(liar, "gone"),
    fail(1 - liar, "pruned", { size: 10 }),
    wait(180),
    see({ a: "expired" })
  )
}

for (const liar of [0, 1, 2]) {
  tell(
    `coins that one of three, at ${liar}, shows in the block in which payments end do not count`,
    { providers: 3, traits },
    ask("a", { currency: "ETH", expiresIn: 15 }),
    wait(33),
    lie(liar, shifts("a", 300, 2)),
    wait(90),
    see({ a: "expired" }),
    seeRows(corroborated)
  )

  tell(
    `coins that come after the end are in an exception though provider ${liar} of three hides them`,
    { providers: 3, traits },
    ask("a", { currency: "ETH", expiresIn: 15 }),
    wait(60),
    see({ a: "expired" }),
    lie(liar, hides("a")),
    pay("a", 300, inside),
    wait(2_400),
    seeExceptions("late 300 ETH")
  )
}

for (const liar of [0, 1, 2]) {
  tell(
    `no payment is kept open where one of three, at ${liar}, invents coins with each search, in blocks without states`,
    { providers: 3, traits },
    ask("a", { currency: "ETH", expiresIn: 15 }),
    mine(60),
    wait(36),
    lie(liar, holdsAnew("a")),
    ...others(3, liar).map((one) => fail(one, "pruned", { size: 20 })),
    mine(6),
    ...stands(3),
    wait(120),
    see({ a: "expired" })
  )
}

for (const providers of [1, 2, 3]) {
  const coins = { currency: "ETH", amount: 1e15 } as const
  tell(
    `late coins that are collected at once are in an exception, of ${providers}`,
    { providers, traits },
    ask("a", { ...coins, expiresIn: 15 }),
    wait(60),
    see({ a: "expired" }),
    pay("a", 3e14, { way: "collected", other: 2 }),
    wait(365 * 60),
    seeExceptions("late 300000000000000 ETH")
  )

  tell(
    `coins that are collected at once show within two minutes while the payment is open, of ${providers}`,
    { providers, traits },
    ask("a", { ...coins, expiresIn: 300 }),
    pay("a", 3e14, { way: "collected", other: 2 }),
    wait(120),
    see({ a: "detecting 300000000000000" })
  )
}

tell(
  "a serving provider whose balance two others deny is no longer trusted, and the real amount is found",
  { providers: 3, traits },
  ask("a", { currency: "ETH", expiresIn: 600 }),
  lie(0, shifts("a", 700)),
  pay("a", 300, inside),
  wait(60),
  see({ a: "detecting 300" }),
  seeHealth({ unhealthy: { 0: /its balance of/ } })
)
