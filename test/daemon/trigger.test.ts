import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { EventKind } from "../../src/Domain/Event.ts"
import { startLocalChain } from "../../src/Sandbox/LocalChain.ts"
import { makeHome, serveHere } from "../lib/daemon.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { startTilld, tilld } from "../lib/tilld.ts"

/** A sandbox as far as the command knows one: a chain that mines by itself, and a daemon that watches it. */
const sandbox = Effect.gen(function* () {
  const chain = yield* startLocalChain({ chain: "base", chainId: 31_341, tokens: ["USDC"], blockTime: 1 })
  const home = yield* makeHome({ chains: new Map([["base", chain]]) })
  const daemon = yield* serveHere(home)
  const env = { TILLD_API_KEY: daemon.key }
  const args = (kind: string, ...more: ReadonlyArray<string>) => [
    ...["trigger", kind, "--config", home.config, "--api-url", daemon.url, "--json"],
    ...more
  ]
  return { chain, home, daemon, env, args }
})

describe("tilld trigger", () => {
  liveTest("creates and pays a payment up to the event", function* () {
    const { args, env } = yield* sandbox
    for (const [kind, status, ...more] of [
      ["payment.created", "pending"],
      ["payment.detecting", "detecting"],
      ["payment.confirmed", "confirmed", "--currency", "ETH"]
    ] as const) {
      const { code, stderr, stdout } = yield* tilld(args(kind, ...more), { env })
      expect(code, stderr).toBe(0)
      const event = JSON.parse(stdout)
      expect(event).toMatchObject({ event: kind, data: { status } })
      expect(stderr).toContain(`created ${event.data.id} on base, to ${event.data.address}`)
      expect(stderr.includes("paid in 0x")).toBe(kind !== "payment.created")
    }
  })

  it.scopedLive.each([
    ["payment.failed", { status: "failed", failureReason: "insufficient_amount" }],
    ["payment.expired", { status: "expired" }]
  ] as const)("waits until a payment's time is over for %s", ([kind, data]) =>
    Effect.gen(function* () {
      const { args, chain, env } = yield* sandbox
      const running = yield* startTilld(args(kind), { env })
      yield* running.line(kind === "payment.failed" ? "paid in" : "created pay_")
      // What was paid is in a block of its time.
      yield* chain.mine()
      yield* chain.rpc("evm_increaseTime", [120])
      const { code, stderr, stdout } = yield* running.ended
      expect(code, stderr).toBe(0)
      expect(JSON.parse(stdout)).toMatchObject({ event: kind, data })
    })
  )

  liveTest(
    "ends with 2 where the command line or the key is wrong, and with 1 where the sandbox does not do it",
    function* () {
      const { args, daemon, env, home } = yield* sandbox
      const kind: EventKind = "payment.created"
      const config = ["--config", home.config]
      const live = { TILLD_API_KEY: `svc_live_${"a".repeat(49)}` }
      const wrong = { TILLD_API_KEY: `svc_test_${"a".repeat(49)}` }
      const cases = [
        [args("payment.paid"), env, 2, "payment.created"],
        [["trigger", ...config], env, 2, "kind"],
        [args("payment.updated"), env, 2, "run tilld sandbox pay ID --part half twice"],
        [["trigger", kind, ...config], {}, 2, "TILLD_API_KEY is not set"],
        [["trigger", kind, ...config], live, 2, "TILLD_API_KEY is a live key"],
        [["trigger", kind, ...config, "--chain", "polygon"], env, 2, "has no local chain polygon in test mode"],
        [args(kind), wrong, 1, "401: The API key is invalid"],
        [args(kind, "--currency", "USDT"), env, 1, "400"],
        [["trigger", kind, ...config, "--api-url", "http://127.0.0.1:1"], env, 1, "does not answer: ECONNREFUSED"],
        [["trigger", kind, ...config, "--api-url", `${daemon.url}/x`], env, 1, "404: There is nothing at this path."]
      ] as const
      for (const [line, given, code, message] of cases) {
        expect(yield* tilld(line, { env: given })).toMatchObject({ code, stderr: expect.stringContaining(message) })
      }
    }
  )
})
