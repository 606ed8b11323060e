import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Address, Hex } from "viem"
import { HDKey } from "viem/accounts"
import { authorizedCall } from "../../src/Collect/authorization.ts"
import type { Plan } from "../../src/Collect/Plan.ts"
import type { SweepResult } from "../../src/Collect/reconcile.ts"
import { type Signed, signatureOf } from "../../src/Collect/Signed.ts"
import { signPlan } from "../../src/Collect/sign.ts"
import { authorizationsOf } from "../../src/Collect/transactions.ts"
import type { Mode } from "../../src/Domain/Chain.ts"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import { type LocalChain, startLocalChain } from "../../src/Sandbox/LocalChain.ts"
import { sponsorAddress } from "../../src/Settings/hdWallet.ts"
import { makeCall, makeHome, newKey, pay, serve } from "../lib/daemon.ts"
import { tilld, tilldJson } from "../lib/tilld.ts"
import { holdsExactly, someone } from "./collecting.ts"
import { eventually } from "./shop.ts"

const usd = 10n ** 6n
const ether = 10n ** 18n
const count = 50
const limits = { allow: [], feeCeiling: 10n ** 15n }

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
  const daemon = yield* serve(home)
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
    const signed = yield* signPlan(plan, home.seed(mode), limits)
    writeFileSync(file(mode), JSON.stringify(signed))
    return { mode, chain, xpub, sponsor, payments, destination, made, plan, signed }
  })
  const sides = yield* Effect.all([side("test", chains.test), side("live", chains.live)], { concurrency: 2 })
  const send = (mode: Mode) => ["sweep", "broadcast", file(mode), ...config]
  return { home, config, file, sides, send }
})

type Side = Effect.Effect.Success<typeof bothModes>["sides"][number]

/** Hands what one mode has signed to the other's chain, where the address of its first authorization has money too. */
const replay = Effect.fnUntraced(function* ({ payments, plan, signed }: Side, chain: LocalChain) {
  const [{ message, token } = expect.fail("no authorization")] = authorizationsOf(plan)
  expect(payments.map(({ address }) => address)).toContain(message.from)
  yield* chain.payToken({ symbol: "USDC", to: message.from, amount: BigInt(message.value) })
  const data = authorizedCall(message, signatureOf(signed.authorizations[0] ?? ""))
  const hash = yield* chain.send({ to: token.contract as Address, data })
  const receipt = chain.rpc<{ readonly status: Hex } | null>("eth_getTransactionReceipt", [hash])
  expect(yield* eventually(receipt, (found) => found !== null)).toMatchObject({ status: "0x0" })
  const sent = Effect.match(chain.sendRaw((signed.transactions[0]?.[0] ?? "") as Hex), {
    onFailure: ({ message }) => message,
    onSuccess: () => "it was taken"
  })
  expect(yield* sent).toContain("invalid chain id")
})

it.scopedLive("collects from 50 addresses of each mode, a transaction each, and mixes nothing of the two", () =>
  Effect.gen(function* () {
    const { config, file, home, send, sides } = yield* bothModes
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

      const { message } = yield* Effect.flip(signPlan(plan, home.seed(other.mode), limits))
      expect(message).toContain("The seed is not the plan's")
      yield* replay(one, other.chain)
      const renamed: Signed = { ...signed, plan: { ...plan, mode: other.mode } }
      writeFileSync(file("renamed"), JSON.stringify(renamed))
      writeFileSync(file("xpub"), other.xpub)
      const asks = (side: Side, { url }: LocalChain) => ({
        [`TILLD_CHAINS__ETHEREUM__${side.mode.toUpperCase()}__RPC_URLS`]: JSON.stringify([url])
      })
      const isOn = (side: Side, { chainId }: LocalChain) => ({
        [`TILLD_CHAINS__ETHEREUM__${side.mode.toUpperCase()}__CHAIN_ID`]: `${chainId}`
      })
      const elsewhere = asks(one, other.chain)
      const exchanged = { ...elsewhere, ...asks(other, chain), ...isOn(one, other.chain), ...isOn(other, chain) }
      const refusals = yield* Effect.all(
        [
          tilld(["sweep", "broadcast", file("renamed"), ...config]),
          tilld([...send(mode), "--xpub", file("xpub")]),
          tilld(send(mode), { env: exchanged }),
          tilld(send(mode), { env: elsewhere })
        ],
        // They have one journal.
        { concurrency: 1 }
      )
      const reasons = [
        "The digest in the signed file is not what its plan says",
        "is of another wallet than the configured one",
        `The plan is for chain ${chain.chainId}, and ethereum.${mode} is chain ${other.chain.chainId}: nothing was sent.`,
        `serves chain ${other.chain.chainId}, and chains.ethereum.${mode} is chain ${chain.chainId}: nothing is read from it`
      ]
      expect(refusals).toMatchObject(
        reasons.map((reason) => ({ code: 1, stdout: "", stderr: expect.stringContaining(reason) }))
      )
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
)
