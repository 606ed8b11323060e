import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import type { Address, Hex } from "viem"
import { HDKey } from "viem/accounts"
import type { Plan } from "../../src/Collect/Plan.ts"
import type { SweepResult } from "../../src/Collect/reconcile.ts"
import { signPlan } from "../../src/Collect/sign.ts"
import type { Mode } from "../../src/Domain/Chain.ts"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import { type LocalChain, startLocalChain } from "../../src/Sandbox/LocalChain.ts"
import { sponsorAddress } from "../../src/Settings/hdWallet.ts"
import { makeCall, makeHome, newKey, pay, serveHere } from "../lib/daemon.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { tilld, tilldJson } from "../lib/tilld.ts"
import { ether, holdsExactly, someone, usd } from "./collecting.ts"
import { failing } from "./refusal.ts"
import { eventually } from "./shop.ts"

const count = 20

/** What each payment is of, other in each mode. */
const amounts: Readonly<Record<Mode, bigint>> = { test: 20n * usd, live: 21n * usd }

const chainOf = (chainId: number) => startLocalChain({ chain: "ethereum", chainId, tokens: ["USDC"] })

/** A daemon with both networks of a chain, and what was paid there. */
const bothModes = Effect.gen(function* () {
  const chains = yield* Effect.all({ test: chainOf(31_337), live: chainOf(41_337) }, { concurrency: 2 })
  const home = yield* makeHome({
    chains: new Map([["ethereum", chains.test]]),
    liveChains: new Map([["ethereum", chains.live]])
  })
  const daemon = yield* serveHere(home)
  const config = ["--config", home.config]
  const file = (name: string) => join(home.folder, name)

  const side = Effect.fnUntraced(function* (mode: Mode, chain: LocalChain) {
    const call = yield* makeCall(daemon.url, mode === "test" ? daemon.key : yield* newKey(home, mode))
    const order = { chain: "ethereum", currency: "USDC", amount: `${amounts[mode]}` }
    const payments = yield* Effect.forEach(
      Array.from({ length: count }, (_, i) => ({ ...order, merchantRef: `${mode} ${i}` })),
      (one) => Effect.map(call<PaymentObject>("POST", "/v1/payments", one), ({ body }) => body),
      { concurrency: 4 }
    )
    const { publicExtendedKey: xpub } = HDKey.fromMasterSeed(home.seed(mode)).derive("m/44'/60'/0'")
    const sponsor = sponsorAddress(xpub) as Address
    yield* chain.payNative({ to: sponsor, amount: ether })
    yield* Effect.forEach(payments, (payment) => pay(chain, payment), { concurrency: 1 })
    yield* Effect.forkScoped(Effect.forever(Effect.delay(chain.mine(), "100 millis")))
    const confirmed = call<{ readonly data: ReadonlyArray<unknown> }>("GET", "/v1/payments?status=confirmed&limit=100")
    yield* eventually(confirmed, ({ body }) => body.data.length === count)
    const destination = someone()
    const network = ["--chain", "ethereum", "--mode", mode]
    const made = yield* tilldJson<{ readonly transactions: number; readonly leftOut: Plan["leftOut"] }>([
      ...["sweep", "plan", ...network, "--to", destination, "-o", file(`${mode}.json`), ...config]
    ])
    const plan = JSON.parse(readFileSync(file(`${mode}.json`), "utf8")) as Plan
    const signed = yield* signPlan(plan, home.seed(mode), { allow: [], feeCeiling: 10n ** 15n })
    writeFileSync(file(mode), JSON.stringify(signed))
    return { mode, chain, sponsor, payments, destination, made, plan, signed }
  })
  const sides = yield* Effect.all([side("test", chains.test), side("live", chains.live)], { concurrency: 2 })
  const send = (mode: Mode) => ["sweep", "broadcast", file(mode), ...config]
  return { config, sides, send }
})

liveTest("collects from many addresses of each mode, a transaction each, and mixes nothing of the two", function* () {
  const { config, send, sides } = yield* bothModes
  const [test, live] = sides
  for (const [one, other] of [
    [test, live],
    [live, test]
  ] as const) {
    const { chain, made, mode, payments, plan, signed } = one
    expect(made).toMatchObject({ transactions: 1, leftOut: [] })
    expect([plan.mode, plan.chainId]).toEqual([mode, chain.chainId])
    expect(new Set(plan.moves.map(({ address }) => address))).toEqual(new Set(payments.map(({ address }) => address)))
    expect(new Set(plan.moves.map(({ amount, way }) => `${way} ${amount}`))).toEqual(
      new Set([`authorization ${amounts[mode]}`])
    )
    expect([signed.authorizations.length, signed.transactions.length]).toEqual([count, 1])

    const asked = { [`TILLD_CHAINS__ETHEREUM__${mode.toUpperCase()}__RPC_URLS`]: JSON.stringify([other.chain.url]) }
    const elsewhere = `serves chain ${other.chain.chainId}, and chains.ethereum.${mode} is chain ${chain.chainId}`
    expect(yield* tilld(send(mode), { env: asked })).toMatchObject(failing(1, `${elsewhere}: nothing is read from it`))
    for (const { chain, destination } of sides) expect(yield* chain.tokenBalance("USDC", destination)).toBe(0n)
  }

  const results = yield* Effect.forEach(sides, ({ mode }) => tilldJson<SweepResult>(send(mode)), { concurrency: 2 })
  for (const [i, { chain, destination, mode, sponsor }] of sides.entries()) {
    const result = results[i] ?? expect.fail(`no result of ${mode}`)
    expect(result.differences).toEqual([])
    expect(holdsExactly(result)).toBe(true)
    expect(result.transfers).toHaveLength(count)
    expect(new Set(result.transfers.map(({ hash }) => hash)).size).toBe(1)
    expect(yield* chain.tokenBalance("USDC", destination)).toBe(BigInt(count) * amounts[mode])
    expect(BigInt(yield* chain.rpc<Hex>("eth_getTransactionCount", [sponsor, "pending"]))).toBe(1n)
  }
  expect(yield* tilldJson<ReadonlyArray<unknown>>(["addresses", "--unswept", ...config])).toEqual([])
})
