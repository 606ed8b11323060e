import { readdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import type { Restored } from "../../src/Backup/restore.ts"
import { confirmations, homeOn, pay, rows, serve } from "../lib/daemon.ts"
import { movedClock } from "../lib/movedClock.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { temporaryFolder } from "../lib/store.ts"
import { tilld, tilldJson } from "../lib/tilld.ts"

const hour = 3_600_000

const anHourAgo = movedClock(-hour)

const usdc = { chain: "optimism", currency: "USDC", amount: "25000000" } as const
const eth = { chain: "optimism", currency: "ETH", amount: "1000000000000000" } as const

liveTest(
  "a backup an hour old serves again in a bare folder: no address twice, and all lost money is listed",
  function* () {
    const { chain, home } = yield* homeOn("optimism")
    const elsewhere = yield* temporaryFolder
    const file = join(elsewhere, "tilld-backup.db")
    const config = ["--config", home.config]

    const first = yield* serve(home, undefined, anHourAgo)
    const kept = yield* Effect.replicateEffect(first.create({ ...usdc, expiresIn: 7_200 }), 3)
    const made = yield* tilldJson<{ payments: number; madeAt: string }>(["backup", file, ...config], { env: anHourAgo })
    expect(made).toMatchObject({ payments: 3 })
    yield* first.end("SIGTERM")

    const second = yield* serve(home, first.key)
    const refused = yield* tilld(["restore", file, ...config])
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringMatching(/tilld serve, process \d+/) })
    const lost = yield* Effect.forEach(Array.from({ length: 50 }), (_, i) => second.create(i % 2 === 0 ? usdc : eth), {
      concurrency: 10
    })
    const paid = lost.slice(0, 10)
    yield* Effect.forEach(paid, (payment) => pay(chain, payment), { concurrency: 1 })
    yield* chain.mine(confirmations)
    yield* second.hasRead(chain)
    yield* second.end("SIGKILL")

    // Another machine: neither the database's folder nor the index mark.
    for (const name of readdirSync(home.folder)) {
      if (!["tilld.toml", "master.key"].includes(name)) rmSync(join(home.folder, name))
    }
    const env = { XDG_CACHE_HOME: elsewhere }
    const restored = yield* tilldJson<Restored>(["restore", file, ...config], { env })
    expect(restored).toMatchObject({
      madeAt: made.madeAt,
      masterKey: "it opens the backup's secrets",
      kept: null,
      lost: null,
      overruled: [],
      openPayments: 3,
      pastDuePayments: 0,
      wallets: [{ from: 3, next: 1003, usedBy: ["the configuration (wallets.test)"] }]
    })
    expect(restored.gapSeconds).toBeGreaterThanOrEqual(hour / 1000)

    const third = yield* serve(home, first.key, env)
    const watched = new Set(
      (yield* rows<{ address: string }>(home, "SELECT address FROM gap_addresses")).map(({ address }) =>
        address.toLowerCase()
      )
    )
    expect(watched.size).toBe(1000)
    expect(lost.filter(({ address }) => !watched.has(address.toLowerCase()))).toEqual([])
    const later = yield* Effect.replicateEffect(third.create(usdc), 5)
    const given = [...kept, ...lost, ...later].map(({ address }) => address)
    expect(new Set(given).size).toBe(given.length)

    const [known] = kept
    if (known === undefined) throw new Error("no payment")
    yield* pay(chain, known)
    const listed = () =>
      rows<{ address: string; currency: string; amount: string }>(
        home,
        "SELECT address, currency, amount FROM exceptions WHERE kind = 'unknown_payment' ORDER BY address"
      )
    yield* Effect.iterate(0, {
      while: (found) => found < paid.length,
      body: () =>
        Effect.zipRight(
          Effect.zipRight(chain.mine(), third.hasRead(chain)),
          Effect.map(listed(), ({ length }) => length)
        )
    })
    expect(yield* listed()).toEqual(
      paid
        .map(({ address, amount, currency }) => ({ address: address.toLowerCase(), currency, amount }))
        .sort((a, b) => (a.address < b.address ? -1 : 1))
    )
    yield* Effect.iterate(yield* third.payment(known), {
      while: ({ status }) => status !== "confirmed",
      body: () => Effect.zipRight(Effect.zipRight(chain.mine(), third.hasRead(chain)), third.payment(known))
    })
  }
)
