import { cpSync, rmSync } from "node:fs"
import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import { confirmations, type Daemon, type Home, homeOn, pay, rows, serve, serveHere } from "../lib/daemon.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { temporaryFolder } from "../lib/store.ts"
import { tilld, tilldJson } from "../lib/tilld.ts"

const usdc = { chain: "optimism", currency: "USDC", amount: "25000000" } as const
const eth = { chain: "optimism", currency: "ETH", amount: "1000000000000000" } as const

const shop = Effect.gen(function* () {
  const { chain, home } = yield* homeOn("optimism")
  return { chain, home }
})

/** A copy of the whole folder, and the way back: everything that came since is gone. */
const copyOf = ({ folder }: Home) =>
  Effect.map(temporaryFolder, (copy) => {
    cpSync(folder, copy, { recursive: true })
    return Effect.sync(() => {
      rmSync(folder, { recursive: true })
      cpSync(copy, folder, { recursive: true, preserveTimestamps: true })
    })
  })

const indexes = (home: Home) =>
  Effect.map(rows<{ wallet_index: number }>(home, "SELECT wallet_index FROM payments ORDER BY wallet_index"), (found) =>
    found.map((row) => row.wallet_index)
  )

const create = (daemon: Daemon, count: number) =>
  Effect.replicateEffect(daemon.create(usdc), count, { concurrency: "unbounded" })

const unknown = (home: Home) =>
  rows<{ address: string; currency: string; amount: string }>(
    home,
    "SELECT address, currency, amount FROM exceptions WHERE kind = 'unknown_payment' AND payment_id IS NULL ORDER BY amount"
  )

describe("a restored copy of the whole folder", () => {
  liveTest("gives no address twice, and money of lost payments is an exception, whenever it came", function* () {
    const { chain, home } = yield* shop
    const first = yield* serveHere(home)
    const kept = yield* create(first, 3)
    yield* first.end("SIGTERM")
    const restore = yield* copyOf(home)

    const second = yield* serveHere(home, first.key)
    const lost = yield* create(second, 4)
    const lostCoins = yield* second.create(eth)
    const [paidBefore, paidAfter] = lost
    if (paidBefore === undefined || paidAfter === undefined) throw new Error("no payments")
    yield* pay(chain, paidBefore)
    yield* pay(chain, lostCoins)
    yield* chain.mine(confirmations)
    yield* second.hasRead(chain)
    yield* second.end("SIGTERM")
    yield* restore

    const third = yield* serveHere(home, first.key)
    const later = yield* create(third, 4)
    const before = new Set([...kept, ...lost, lostCoins].map(({ address }) => address))
    expect(later.filter(({ address }) => before.has(address))).toEqual([])
    expect(new Set(later.map(({ address }) => address)).size).toBe(4)

    yield* pay(chain, { ...paidAfter, amount: "7" })
    yield* chain.mine(confirmations + 1)
    yield* third.hasRead(chain)
    yield* Effect.iterate(0, {
      while: (found) => found < 3,
      body: () =>
        Effect.zipRight(
          Effect.zipRight(chain.mine(), third.hasRead(chain)),
          Effect.map(unknown(home), ({ length }) => length)
        )
    })
    expect(yield* unknown(home)).toEqual([
      { address: lostCoins.address.toLowerCase(), currency: "ETH", amount: eth.amount },
      { address: paidBefore.address.toLowerCase(), currency: "USDC", amount: usdc.amount },
      { address: paidAfter.address.toLowerCase(), currency: "USDC", amount: "7" }
    ])
    for (const payment of later) expect((yield* third.payment(payment)).status).toBe("pending")
  })
})

describe("a crash", () => {
  liveTest("skips nothing, as often as it comes", function* () {
    const { home } = yield* shop
    let key: string | undefined
    for (let life = 0; life < 5; life++) {
      yield* Effect.gen(function* () {
        const daemon: Daemon = yield* serve(home, key)
        key = daemon.key
        // Killed while others are under way: between their commit and the mark, too.
        yield* Effect.fork(Effect.exit(create(daemon, 40)))
        yield* create(daemon, 1 + life)
        yield* daemon.end("SIGKILL")
      }).pipe(Effect.scoped)
    }
    const taken = yield* indexes(home)
    expect(taken.length).toBeGreaterThanOrEqual(15)
    expect(taken).toEqual(taken.map((_, i) => i))
    expect(yield* rows(home, "SELECT * FROM gap_addresses")).toEqual([])
  })
})

describe("tilld addresses jump", () => {
  const jump = (home: Home, ...args: ReadonlyArray<string>) =>
    tilldJson<ReadonlyArray<object>>(["addresses", "jump", "--config", home.config, ...args])
  const usedBy = ["the configuration (wallets.test)"]

  liveTest("skips addresses beside a daemon and without one, whose next start skips them", function* () {
    const { home } = yield* shop
    const daemon = yield* serveHere(home)
    yield* create(daemon, 2)
    expect(yield* jump(home, "--by", "30")).toMatchObject([{ from: 2, next: 32, usedBy }])
    expect((yield* daemon.create(usdc)).address).toBe(home.address(32))
    yield* daemon.end("SIGTERM")
    expect(yield* jump(home)).toMatchObject([{ from: 33, next: 1033, usedBy }])
    const { code, stdout } = yield* tilld(["addresses", "jump", "--by", "1", "--config", home.config])
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining("1034") })
    const refused = yield* tilld(["addresses", "jump", "--by", "50001", "--config", home.config])
    expect(refused).toMatchObject({ code: 2, stdout: "" })
    const again = yield* serveHere(home, daemon.key)
    expect((yield* again.create(usdc)).address).toBe(home.address(1034))
    expect(yield* rows(home, "SELECT count(*) AS skipped FROM gap_addresses")).toEqual([{ skipped: 1031 }])
  })
})
