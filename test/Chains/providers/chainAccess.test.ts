import { expect } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { numberToHex } from "viem"
import { readingBy, readPricedHead } from "../../../src/Chains/providers/chainAccess.ts"
import type { Provider } from "../../../src/Chains/providers/Providers.ts"
import { testChain } from "../../lib/settings.ts"
import { nodeClient, replies } from "../../sim/nodeClient.ts"
import { errorOf, hash, type Node } from "../providing.ts"
import { onNodes } from "./onNodes.ts"

onNodes("a command's provider that answers between short failures stays needed", 2, function* ({ a, of, providers }) {
  const access = { chain: testChain(), providers }
  let isFailing = false
  const read = (mustBeTwo: boolean) =>
    readingBy(access, { mustBeTwo }, ({ host }) =>
      Effect.suspend(() => (isFailing && host === "b" ? errorOf(host, "http") : Effect.succeed(host)))
    )
  /** So often, a minute apart: whether the second one fails, and what was read at last. */
  const minutes = (count: number, fails: (minute: number) => boolean) =>
    Effect.gen(function* () {
      let found: ReadonlyArray<string> = []
      for (let minute = 0; minute < count; minute++) {
        isFailing = fails(minute)
        found = yield* read(false)
        yield* TestClock.adjust("1 minute")
      }
      return found
    })
  expect(yield* minutes(24, (minute) => minute % 2 === 0)).toEqual(["a", "b"])
  expect(yield* minutes(9, () => true)).toEqual(["a"])
  expect(providers.decidesAlone(of(a))).toBe(false)
  // Without an answer for the whole patience it is given up.
  yield* minutes(3, () => true)
  expect(yield* read(true)).toEqual(["a"])
  expect(yield* minutes(1, () => true)).toEqual(["a"])
  expect(yield* minutes(1, () => false)).toEqual(["a", "b"])
  expect(providers.decidesAlone(of(a))).toBe(false)
})

onNodes("the head is the serving provider's, with the lower base fee of two", 2, function* ({ a, b, of, providers }) {
  const saying = (node: Node, number: number, baseFee: bigint): Provider => {
    const head = { number: numberToHex(number), hash: hash("d"), timestamp: "0x5", baseFeePerGas: numberToHex(baseFee) }
    return { ...of(node), client: nodeClient(node.client.host, (calls) => replies("", calls, () => head)) }
  }
  const headBy = (first: Provider, second: Provider) =>
    readPricedHead({
      chain: testChain(),
      providers: { ...providers, current: Effect.succeed(first), witnesses: () => Effect.succeed([second]) }
    })
  const head = { number: 10, hash: hash("d"), time: 5 }
  expect(yield* headBy(saying(a, 10, 7n), saying(b, 1_000_000, 3n))).toEqual({ ...head, baseFee: 3n })
  expect(yield* headBy(saying(a, 10, 3n), saying(b, 1_000_000, 7n))).toEqual({ ...head, baseFee: 3n })
})
