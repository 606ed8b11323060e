import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import type { Hex } from "viem"
import { Erc20 } from "../../src/Domain/Currency.ts"
import { batcherAddress, localTokens } from "../../src/Sandbox/Contracts.ts"
import { type LocalChainOptions, startLocalChain } from "../../src/Sandbox/LocalChain.ts"

const start = (options: Partial<LocalChainOptions> = {}) =>
  startLocalChain({ chain: "ethereum", chainId: 31_337, tokens: Erc20.literals, ...options })

describe("start", () => {
  it.scopedLive("gives five chains the same addresses, and only the tokens asked for", () =>
    Effect.gen(function* () {
      const wanted: ReadonlyArray<ReadonlyArray<Erc20>> = [Erc20.literals, ["USDC", "DAI"], ["WBTC"], ["USDT"], []]
      const chains = yield* Effect.forEach(wanted, (tokens, i) => start({ tokens, chainId: 31_337 + i }), {
        concurrency: "unbounded"
      })
      for (const [i, chain] of chains.entries()) {
        expect(Number(yield* chain.rpc<Hex>("eth_chainId"))).toBe(31_337 + i)
        expect(Object.keys(chain.tokens)).toEqual(wanted[i])
        for (const symbol of Erc20.literals) {
          const code = yield* chain.rpc<Hex>("eth_getCode", [localTokens[symbol].address, "latest"])
          expect(code === "0x").toBe(chain.tokens[symbol] === undefined)
        }
        const batcher = yield* chain.rpc<Hex>("eth_getCode", [batcherAddress, "latest"])
        expect(batcher).not.toBe("0x")
      }
    })
  )

  it("keeps the addresses that the sandbox's configuration names", () => {
    expect(Object.values(localTokens).map(({ address }) => address)).toEqual([
      "0xA15BB66138824a1c7167f5E85b957d04Dd34E468",
      "0xb19b36b1456E65E3A6D514D3F715f204BD59f431",
      "0x8ce361602B935680E8DeC218b820ff5056BeB7af",
      "0xe1Aa25618fA0c7A1CFDab5d6B456af611873b629"
    ])
  })

  it.scopedLive("names a port in use", () =>
    Effect.gen(function* () {
      const { port } = yield* start({ tokens: [] })
      const error = yield* Effect.flip(start({ tokens: [], port }))
      expect(error).toMatchObject({ _tag: "PortInUse", port })
      expect(error.message).toContain(`Port ${port} on 127.0.0.1 is in use, and the local chain ethereum needs it`)
    })
  )

  it.scopedLive("names a missing binary and its remedy", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(start({ binary: "/nowhere/anvil" }))
      expect(error._tag).toBe("AnvilMissing")
      expect(error.message).toMatch(/\/nowhere\/anvil is missing or cannot be run \(.*ENOENT\): run `npm install/)
    })
  )

  it.scopedLive("says why Anvil ended", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(start({ hardfork: "tomorrow" }))
      expect(error._tag).toBe("AnvilNotStarted")
      expect(error.message).toContain("tomorrow")
    })
  )
})

describe("the process", () => {
  it.live("ends with the scope, even while it is stopped", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const chain = yield* Scope.extend(start({ tokens: [] }), scope)
      process.kill(chain.pid, "SIGSTOP")
      // A thread that was on the other core may answer once more.
      const error = yield* Effect.flip(Effect.forever(chain.rpc("eth_chainId", [], "200 millis")))
      expect(error).toMatchObject({ _tag: "LocalRpcError", reason: "Deadline" })
      yield* Scope.close(scope, Exit.void)
      expect(() => process.kill(chain.pid, 0)).toThrow("ESRCH")
    })
  )

  it.scopedLive("that dies by itself is told, and its RPC unreachable", () =>
    Effect.gen(function* () {
      const chain = yield* start({ tokens: [] })
      process.kill(chain.pid, "SIGTERM")
      expect(yield* chain.ended).toMatch(/SIGTERM|exit code/)
      expect(yield* Effect.flip(chain.head)).toMatchObject({ _tag: "LocalRpcError", reason: "Unreachable" })
    })
  )

  it.scopedLive("refuses a call in its own words", () =>
    Effect.gen(function* () {
      const chain = yield* start({ tokens: [] })
      const error = yield* Effect.flip(chain.rpc("eth_noSuchThing"))
      expect(error).toMatchObject({ reason: "Refused", method: "eth_noSuchThing" })
      const unknown = `0x${"11".repeat(32)}` as const
      expect((yield* Effect.flip(chain.rawTransaction(unknown))).message).toContain(unknown)
    })
  )
})
