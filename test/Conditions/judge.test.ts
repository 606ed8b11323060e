import { writeFileSync } from "node:fs"
import { expect, it } from "@effect/vitest"
import { BigDecimal, Effect, Layer, TestClock } from "effect"
import type { ChainHealth } from "../../src/Chains.ts"
import { hoursLeft, makeJudge } from "../../src/Conditions/judge.ts"
import { keyOf } from "../../src/Conditions/standing.ts"
import { iso as isoOf } from "../../src/lib/moment.ts"
import { type PriceStatus, unread } from "../../src/Quotes/Prices.ts"
import * as Sql from "../../src/Sql.ts"
import { Workers } from "../../src/Telemetry/Workers.ts"
import { seed } from "../lib/endpointRows.ts"
import { testChain, testSettings, testSettingsLayer } from "../lib/settings.ts"
import { execute, storeAccount, temporaryDatabase } from "../lib/store.ts"
import { type Around, chainsOf, waitingToCollect } from "./surroundings.ts"

/** Seconds. */
const now = 1_800_000_000
const hour = 3600
const iso = (seconds: number) => isoOf(seconds * 1000)

const well: ChainHealth = { chain: "base", mode: "live", ready: true, providers: [] }
const other: ChainHealth = { ...well, chain: "polygon" }
/** Both chains, whose heads seem so many seconds ahead. */
const heads = (...ahead: [number, number]) => [
  { ...well, headAheadSeconds: ahead[0] },
  { ...other, headAheadSeconds: ahead[1] }
]
const provider = { host: "rpc.example", healthy: false, reason: "unreachable" }
const inTest = { ...well, mode: "test", ready: false, headAheadSeconds: 3600, providers: [provider] } as const

interface World {
  readonly chains?: ReadonlyArray<ChainHealth>
  /** When the last backup was made. */
  readonly backup?: number
  readonly endpoints?: Parameters<typeof seed>[1]
  /** What the account has used of its quota. */
  readonly used?: number
  /** Millionths of a USDC that wait to be collected, and the sum of USD that is told of. */
  readonly waiting?: readonly [amount: bigint, remindUsd: string]
  /** Conditions of workers that hold. */
  readonly workers?: ReadonlyArray<string>
}

const failing = (since: number, ...others: Parameters<typeof seed>[1][number][2]) =>
  [["pending", 1, since] as const, ...others] as const

it.effect.each<readonly [string, World, ReadonlyArray<string>]>([
  ["nothing", { chains: [{ ...well, headAheadSeconds: -5 }] }, []],
  ["no backup yet", {}, []],
  ["a backup of a day", { backup: now - 25 * hour }, []],
  ["an older backup", { backup: now - 25 * hour - 1 }, ["backup_old"]],
  ["a worker", { workers: ["webhooks"] }, ["worker_hangs webhooks"]],
  ["a chain that is not read", { chains: [{ ...well, ready: false }, other] }, ["chain_not_read base.live"]],
  [
    "the second of two providers",
    { chains: [{ ...well, providers: [{ ...provider, healthy: true }, provider] }] },
    ["provider_unused base.live 1"]
  ],
  [
    "a provider at its limit, whether it is used or not",
    {
      chains: [
        {
          ...well,
          providers: [
            { host: "one", healthy: true, limited: true },
            { ...provider, limited: true }
          ]
        }
      ]
    },
    ["provider_limited base.live 0", "provider_limited base.live 1"]
  ],
  [
    "a test chain with every trouble",
    { chains: [inTest] },
    ["note chain_not_read base.test", "note provider_unused base.test 0", "note clock_behind base.test"]
  ],
  [
    "one of two providers that decides alone",
    { chains: [{ ...well, decidesAloneSeconds: 600 }] },
    ["provider_decides_alone base.live"]
  ],
  [
    "a chain whose providers disagree",
    { chains: [{ ...well, reason: "one denies" }, other] },
    ["chain_troubled base.live"]
  ],
  [
    "what waits for the others while one decides alone",
    { chains: [{ ...well, reason: "one decides alone", decidesAloneSeconds: 600 }] },
    ["provider_decides_alone base.live"]
  ],
  ["a clock that is little behind", { chains: [{ ...well, headAheadSeconds: 30 }] }, []],
  [
    "a clock that is behind one chain",
    { chains: [{ ...well, headAheadSeconds: 31 }, other] },
    ["clock_behind base.live"]
  ],
  ["a test chain that stands still", { chains: [{ ...well, mode: "test", headAheadSeconds: -301 }] }, []],
  ["one chain that stands still", { chains: heads(-301, -300) }, []],
  ["a clock that is ahead of all chains", { chains: heads(-301, -302) }, ["clock_ahead"]],
  ["a backup of a time to come", { backup: now + 61 }, ["backup_old"]],
  ["a backup just before a small step back", { backup: now + 60 }, []],
  ["an endpoint that fails", { endpoints: [["wh_1", "live", failing(now)]] }, ["endpoint_receives_nothing wh_1"]],
  [
    "one that fails since a time to come",
    { endpoints: [["wh_1", "live", failing(now + 500)]] },
    ["endpoint_receives_nothing wh_1"]
  ],
  [
    "one that something newer has reached",
    { endpoints: [["wh_1", "live", failing(now - 500, ["delivered", 1, now - 400])]] },
    []
  ],
  ["an account below its quota", { used: 0.799 }, []],
  ["money that waits, where no sum is named", { waiting: [10n ** 12n, "0"] }, []],
  ["money that waits, up to the sum that is named", { waiting: [500_500_000n, "500.5"] }, []],
  ["more money than that", { waiting: [500_500_001n, "500.5"] }, ["uncollected"]],
  ["an account close to its quota", { used: 0.8 }, ["quota_near default"]],
  ["an account that has used its quota", { used: 1 }, ["quota_full default"]],
  ["one of test mode", { endpoints: [["wh_1", "test", failing(now - 500)]] }, []],
  [
    "the longest failing twenty of many",
    { endpoints: Array.from({ length: 22 }, (_, i) => [`wh_${i}`, "live", failing(now - 500 - i)] as const) },
    Array.from({ length: 20 }, (_, i) => `endpoint_receives_nothing wh_${21 - i}`)
  ]
])(
  "%s is reported correctly",
  ([
    ,
    { backup, chains = [well], endpoints = [], workers: held = [], used = 0, waiting: [amount, remindUsd] = [0n, "0"] },
    expected
  ]) =>
    Effect.gen(function* () {
      const path = yield* temporaryDatabase
      yield* TestClock.setTime(now * 1000)
      yield* Effect.gen(function* () {
        seed(path, endpoints)
        if (backup !== undefined) {
          writeFileSync(`${path}.last-backup`, JSON.stringify({ madeAt: iso(backup), file: "-", sha256: "" }))
        }
        yield* storeAccount
        yield* execute("UPDATE accounts SET quota_bytes = 1000000")
        yield* execute("UPDATE usage SET bytes = iif(mode = 'live', ?, 0)", [1e6 * used])
        const workers = yield* Workers
        for (const name of held) workers.condition(name, () => "it hangs")
        const found = yield* (yield* makeJudge(() => [])).look
        const keys = found.map((one) => `${one.severity === "note" ? "note " : ""}${keyOf(one)}`)
        // Of those that are stored with the account.
        expect(keys.filter((key) => !key.startsWith("exceptions_"))).toEqual(expected)
      }).pipe(
        Effect.provide(
          Layer.mergeAll(
            Sql.layer(path),
            Workers.layer,
            chainsOf(() => chains),
            waitingToCollect(amount)
          ).pipe(Layer.provideMerge(testSettingsLayer(path, { sweep: { allow: [], remindUsd } })))
        )
      )
    }).pipe(Effect.scoped)
)

it.each<readonly [string, ReadonlyArray<readonly [minute: number, free: number]>, number | undefined]>([
  [
    "too little is known",
    [
      [0, 10],
      [10, 5]
    ],
    undefined
  ],
  ["it does not fill up", [0, 10, 20, 30, 40, 50].map((at) => [at, 10] as const), undefined],
  ["it loses a tenth of its room in an hour", [0, 12, 24, 36, 48, 60].map((at) => [at, 100 - at / 6] as const), 9],
  [
    "its room is there again",
    [
      [0, 10],
      [12, 9],
      [24, 8],
      [36, 7],
      [48, 6],
      [60, 11]
    ],
    undefined
  ]
])("a disk of which %s", (_, samples, hours) => {
  const taken = samples.map(([minute, free]) => ({ at: minute * 60_000, free }))
  expect(hoursLeft(taken, taken.at(-1) ?? { at: 0, free: 0 })).toBe(hours)
})

/** The conditions of a live chain without `[alerts]` and `[admin]`; `first`: when the first event was stored, Unix seconds. */
const inLive = <A, E>(
  first: number,
  around: Around,
  test: (found: Effect.Effect<ReadonlyArray<string>>) => Effect.Effect<A, E>,
  server: { readonly host?: string; readonly trustedProxies?: ReadonlyArray<string> } = {}
) =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    yield* TestClock.setTime(now * 1000)
    return yield* Effect.gen(function* () {
      yield* storeAccount
      yield* execute(
        `INSERT INTO events (id, account_id, mode, payment_id, kind, body, created_at)
         VALUES ('evt_1', 'default', 'live', 'pay_1', 'payment.created', '{}', ?)`,
        [first * 1000]
      )
      const { look } = yield* makeJudge(() => [])
      const keys = Effect.map(look, (found) => found.map(keyOf).filter((key) => !key.startsWith("exceptions_")))
      return yield* test(Effect.map(keys, (all) => all.toSorted()))
    }).pipe(
      Effect.provide(
        Layer.mergeAll(
          Sql.layer(path),
          Workers.layer,
          chainsOf(() => [well]),
          waitingToCollect(0n, around)
        ).pipe(
          Layer.provideMerge(
            testSettingsLayer(path, {
              chains: [testChain({ mode: "live" })],
              server: { ...testSettings(path).server, ...server }
            })
          )
        )
      )
    )
  }).pipe(Effect.scoped)

it.effect.each([
  ["of a day", 24 * hour, ["nobody_is_told"]],
  ["of more than a day", 25 * hour + 1, ["backup_missing", "nobody_is_told"]]
] as const)("a database %s without a backup", ([, age, expected]) =>
  inLive(now - age, {}, (found) => Effect.map(found, (keys) => expect(keys).toEqual(expected)))
)

it.effect.each([
  ["every address", { host: "0.0.0.0" }, true],
  ["every address of version 6", { host: "::" }, true],
  ["every address, mapped into version 6", { host: "::ffff:0.0.0.0" }, true],
  ["a public one", { host: "203.0.114.7" }, true],
  ["a public one with a proxy", { host: "203.0.114.7", trustedProxies: ["203.0.114.8/32"] }, false],
  ["a private one", { host: "10.0.0.7" }, false],
  ["this machine's", { host: "127.0.0.1" }, false],
  ["a name", { host: "localhost" }, false]
] as const)("a listener at %s, and what stands in front of it", ([, server, isTold]) =>
  inLive(now, {}, (found) => Effect.map(found, (keys) => expect(keys.includes("no_proxy")).toBe(isTold)), server)
)

it.effect("webhooks that are due and not attempted", () =>
  inLive(now, { oldestDueMillis: 120_001 }, (found) =>
    Effect.map(found, (keys) => expect(keys).toEqual(["deliveries_wait", "nobody_is_told"]))
  )
)

it.effect(
  "a price that is lost, and none that there never was; all of them are one condition, also after a restart",
  () => {
    const of = { source: undefined, age: undefined, spread: undefined, fresh: [], reason: unread }
    const price = BigDecimal.make(2500n, 0)
    let prices: ReadonlyArray<PriceStatus> = []
    const found = (symbol: "ETH" | "EUR" | "MXN", price?: BigDecimal.BigDecimal, reason = "coinbase: HTTP 503") => ({
      ...{ ...of, symbol, price, reason }
    })
    return inLive(now, { status: () => prices }, (keys) =>
      Effect.gen(function* () {
        prices = [found("ETH", undefined, unread), found("MXN", undefined, unread)]
        expect(yield* keys).toEqual(["nobody_is_told"])
        prices = [found("ETH"), found("MXN")]
        expect(yield* keys).toEqual(["no_price", "nobody_is_told"])
        prices = [found("ETH", price), found("EUR", price), found("MXN")]
        expect(yield* keys).toEqual(["nobody_is_told"])
        prices = [found("ETH"), found("EUR", price), found("MXN")]
        expect(yield* keys).toEqual(["no_price ETH", "nobody_is_told"])
      })
    )
  }
)
