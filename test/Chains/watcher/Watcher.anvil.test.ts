import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect, type Layer, Redacted, type Scope } from "effect"
import { type Address, encodeFunctionData, getAddress, type Hex } from "viem"
import { AddressHistory } from "../../../src/Chains/balances/AddressHistory.ts"
import { Rpc } from "../../../src/Chains/rpc/Rpc.ts"
import {
  batcherAbi,
  batcherAddress,
  type LocalChain,
  localTokens,
  reverterAbi,
  reverterAddress,
  startLocalChain
} from "../../../src/Sandbox/LocalChain.ts"
import type { ChainSettings } from "../../../src/Settings.ts"
import { temporaryDatabase } from "../../lib/store.ts"
import { chainSettings, committedTo, ledger, pay, realSettlement, watch, world } from "../world.ts"

const address = (n: number): Address => getAddress(`0x${(0xa11ce000 + n).toString(16).padStart(40, "0")}` as Hex)

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

const worldOf = (chain: LocalChain, path: string) => world(path, [settingsFor(chain)], Rpc.layer, realSettlement)

/** A test with a real node and the real settlement. */
const onNode = (
  title: string,
  test: (
    chain: LocalChain
  ) => Effect.Effect<void, unknown, Layer.Layer.Success<ReturnType<typeof worldOf>> | Scope.Scope>
) =>
  it.scopedLive(title, () =>
    Effect.gen(function* () {
      const chain = yield* startLocalChain({ chain: "ethereum", chainId: 31_337, tokens: ["USDC", "USDT", "DAI"] })
      yield* Effect.provide(test(chain), worldOf(chain, yield* temporaryDatabase))
    })
  )

describe("watching a real node", () => {
  onNode("sees native coin, a token without return value and one behind a proxy, no forged transfer", (chain) =>
    Effect.gen(function* () {
      yield* watch
      yield* committedTo((yield* chain.head).number)
      // The reverter is a contract, so that a payment to it can fail.
      const receivers = [address(0), address(1), address(2), address(3), reverterAddress]
      yield* Effect.forEach(receivers, (to) => pay(to), { concurrency: 1 })
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
        failing: yield* chain.send({ to: reverterAddress, value: 10n ** 18n }),
        succeeding: yield* chain.send({
          to: reverterAddress,
          value: 8n,
          data: encodeFunctionData({ abi: reverterAbi, functionName: "swallow", args: [address(1)] })
        }),
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
          [sent.dai, "DAI.e", "7", head.hash],
          [sent.succeeding, "ETH", "8", head.hash]
        ].sort()
      )
    })
  )

  onNode("finds which addresses have been used", (chain) =>
    Effect.gen(function* () {
      yield* chain.payNative({ to: address(1), amount: 1n })
      yield* chain.payToken({ symbol: "USDT", to: address(2), amount: 1n })
      yield* chain.mine()
      const used: Array<string> = []
      const { vet } = yield* AddressHistory
      const unreachable = yield* vet("test", [0, 1, 2, 3].map(address), (found) => void used.push(...found.addresses))
      expect({ used, unreachable }).toEqual({ used: [address(1), address(2)], unreachable: [] })
    }).pipe(Effect.provide(AddressHistory.layer))
  )
})
