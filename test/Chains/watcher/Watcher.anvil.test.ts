import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect, Layer, Redacted } from "effect"
import { type Address, encodeFunctionData, getAddress, type Hex } from "viem"
import { AddressHistory } from "../../../src/Chains/balances/AddressHistory.ts"
import type { Settlement } from "../../../src/Chains/ledger/SettlementTag.ts"
import { Rpc } from "../../../src/Chains/rpc/Rpc.ts"
import { Chains } from "../../../src/Chains.ts"
import {
  batcherAbi,
  batcherAddress,
  localTokens,
  reverterAbi,
  reverterAddress
} from "../../../src/Sandbox/Contracts.ts"
import { type LocalChain, startLocalChain } from "../../../src/Sandbox/LocalChain.ts"
import type { ChainSettings } from "../../../src/Settings.ts"
import { temporaryDatabase } from "../../lib/store.ts"
import {
  Announced,
  chainSettings,
  committedTo,
  ledger,
  nextCommit,
  notingSettlement,
  pay,
  paymentById,
  realSettlement,
  until,
  watch,
  world
} from "../world.ts"

const address = (n: number): Address => getAddress(`0x${(0xa11ce000 + n).toString(16).padStart(40, "0")}` as Hex)
const startChain = startLocalChain({ chain: "ethereum", chainId: 31_337, tokens: ["USDC", "USDT", "DAI"] })

const settingsFor = (chain: LocalChain): ChainSettings =>
  chainSettings({
    rpcUrls: [Redacted.make(chain.url)],
    chainId: chain.chainId,
    pollInterval: Duration.millis(50),
    tokens: (["USDC", "USDT"] as const).map((symbol) => ({
      symbol,
      address: localTokens[symbol].address.toLowerCase(),
      decimals: localTokens[symbol].decimals
    })),
    wrongTokens: [{ name: "DAI.e", address: localTokens.DAI.address.toLowerCase() }]
  })

const worldOf = <S, E, R>(chain: LocalChain, settlement: Layer.Layer<Settlement | S, E, R>) =>
  Effect.map(temporaryDatabase, (path) => world(path, [settingsFor(chain)], Rpc.layer, settlement))

const swallow = (to: Address) => encodeFunctionData({ abi: reverterAbi, functionName: "swallow", args: [to] })

const amounts = Effect.map(ledger, (rows) =>
  rows.map((row) => `${row.currency} ${row.amount} ${row.canonical === 1 ? "counts" : "orphaned"}`).sort()
)

describe("watching a real node", () => {
  it.scopedLive("sees native coin, a token without return value and one behind a proxy, no forged transfer", () =>
    Effect.gen(function* () {
      const chain = yield* startChain
      const world = yield* worldOf(chain, notingSettlement)
      yield* Effect.gen(function* () {
        yield* watch
        yield* committedTo((yield* chain.head).number)
        yield* Effect.forEach([0, 1, 2, 3], (n) => pay(address(n)), { concurrency: 1 })
        const sent = {
          coin: yield* chain.payNative({ to: address(0), amount: 10n ** 18n }),
          usdc: yield* chain.payToken({ symbol: "USDC", to: address(1), amount: 5_000_000n }),
          usdt: yield* chain.payToken({ symbol: "USDT", to: address(2), amount: 6_000_000n }),
          dai: yield* chain.payToken({ symbol: "DAI", to: address(3), amount: 7n }),
          // A foreign contract that emits a Transfer event.
          fake: yield* chain.send({
            to: batcherAddress,
            data: encodeFunctionData({
              abi: batcherAbi,
              functionName: "fakeTransfer",
              args: [address(9), address(1), 10n ** 12n]
            })
          }),
          // A failed transaction with a value.
          failing: yield* chain.send({ to: reverterAddress, value: 10n ** 18n }),
          nobody: yield* chain.payNative({ to: address(9), amount: 10n ** 18n })
        }
        yield* chain.mine()
        const head = yield* chain.head
        yield* committedTo(head.number)
        const rows = yield* ledger
        expect(rows.map((row) => [row.tx_hash, row.currency, row.amount, row.block_hash]).sort()).toEqual(
          [
            [sent.coin, "ETH", "1000000000000000000", head.hash],
            [sent.usdc, "USDC", "5000000", head.hash],
            [sent.usdt, "USDT", "6000000", head.hash],
            [sent.dai, "DAI.e", "7", head.hash]
          ].sort()
        )
      }).pipe(Effect.provide(world))
    })
  )

  it.scopedLive("counts no value of a transaction that failed", () =>
    Effect.gen(function* () {
      const chain = yield* startChain
      const world = yield* worldOf(chain, notingSettlement)
      yield* Effect.gen(function* () {
        yield* watch
        // The receiver is a contract here, so that a payment to it can fail.
        yield* pay(reverterAddress)
        yield* chain.send({ to: reverterAddress, value: 5n })
        yield* chain.mine()
        yield* committedTo((yield* chain.head).number)
        expect(yield* ledger).toEqual([])
        yield* chain.send({ to: reverterAddress, value: 7n, data: swallow(address(1)) })
        yield* chain.mine()
        yield* committedTo((yield* chain.head).number)
        expect(yield* amounts).toEqual(["ETH 7 counts"])
      }).pipe(Effect.provide(world))
    })
  )

  it.scopedLive("follows a reorg of two blocks that drops the payment, and another that mines it again", () =>
    Effect.gen(function* () {
      const chain = yield* startChain
      const world = yield* worldOf(chain, realSettlement)
      yield* Effect.gen(function* () {
        const announced = yield* Announced
        yield* chain.mine(5)
        yield* watch
        yield* committedTo((yield* chain.head).number)
        const payment = yield* pay(address(0), { currency: "USDC", amount: 5_000_000n })
        const hash = yield* chain.payToken({ symbol: "USDC", to: address(0), amount: 5_000_000n })
        yield* chain.mine(2)
        const raw = yield* chain.rawTransaction(hash)
        yield* committedTo((yield* chain.head).number)
        expect(yield* paymentById(payment.id)).toMatchObject({ status: "detecting", txHash: hash })

        yield* chain.reorg(2)
        // The branch is as long as the old one: only its hashes differ.
        const { hash: head } = yield* chain.head
        yield* Effect.repeat(nextCommit, { until: (commit) => commit.head.hash === head })
        expect(yield* amounts).toEqual(["USDC 5000000 orphaned"])
        expect(yield* paymentById(payment.id)).toMatchObject({ status: "pending" })

        yield* chain.sendRaw(raw)
        yield* chain.mine(3)
        yield* committedTo((yield* chain.head).number)
        expect(yield* amounts).toEqual(["USDC 5000000 counts", "USDC 5000000 orphaned"])
        expect(yield* paymentById(payment.id)).toMatchObject({ status: "confirmed", txHash: hash })
        expect(announced).toEqual(["detecting", "detecting", "confirmed"])
      }).pipe(Effect.provide(world))
    })
  )

  it.scopedLive("waits for a node that returned to a lower head, and for one that hangs", () =>
    Effect.gen(function* () {
      const chain = yield* startChain
      const world = yield* worldOf(chain, notingSettlement)
      yield* Effect.gen(function* () {
        const health = Effect.flatMap(Chains, (chains) => Effect.map(chains.health, ([one]) => one))
        yield* pay(address(0))
        yield* watch
        const before = yield* chain.snapshot
        yield* chain.payNative({ to: address(0), amount: 3n })
        yield* chain.mine(3)
        const { number } = yield* chain.head
        yield* committedTo(number)
        yield* chain.revert(before)
        yield* until(health, (now) => now?.reason?.includes("(behind): its head is") === true)
        expect((yield* health)?.head).toBe(number)
        expect(yield* amounts).toEqual(["ETH 3 counts"])
        // The next branch does not have the payment.
        yield* chain.mine(4)
        yield* committedTo(number + 1)
        expect(yield* amounts).toEqual(["ETH 3 orphaned"])

        process.kill(chain.pid, "SIGSTOP")
        yield* until(health, (now) => now?.reason?.includes("(timeout)") === true)
        process.kill(chain.pid, "SIGCONT")
        yield* chain.payNative({ to: address(0), amount: 4n })
        yield* chain.mine()
        yield* committedTo(number + 2)
        expect(yield* amounts).toEqual(["ETH 3 orphaned", "ETH 4 counts"])
        const gas = yield* Effect.flatMap(Chains, (chains) => chains.gas({ chain: "ethereum", mode: "test" }))
        expect(gas?.price).toBeGreaterThan(0n)
        expect(gas?.l1Fee).toBe(0n)
      }).pipe(Effect.provide(world))
    })
  )

  it.scopedLive("knows which addresses have been used", () =>
    Effect.gen(function* () {
      const chain = yield* startChain
      const world = yield* worldOf(chain, notingSettlement)
      yield* chain.payNative({ to: address(1), amount: 1n })
      yield* chain.payToken({ symbol: "USDT", to: address(2), amount: 1n })
      yield* chain.mine()
      const used: Array<string> = []
      const unreachable = yield* Effect.flatMap(AddressHistory, (history) =>
        history.vet("test", [0, 1, 2, 3].map(address), (found) => void used.push(...found.addresses))
      ).pipe(Effect.provide(Layer.provide(AddressHistory.layer, world)))
      expect({ used, unreachable }).toEqual({ used: [address(1), address(2)], unreachable: [] })
    })
  )
})
