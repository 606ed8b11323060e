import { pathToFileURL } from "node:url"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { derivingThread } from "../../../src/Payments/addresses/derivingThread.ts"
import { hdWallet } from "../../../src/Settings/hdWallet.ts"
import { NoThread } from "../../../src/Sql/workerThread.ts"
import { built } from "../../lib/processes.ts"
import { liveTest } from "../../lib/scopedTest.ts"
import { testXpub } from "../../lib/settings.ts"

const wallet = hdWallet(testXpub)
const range = (from: number, count: number) => ({ external: wallet.external, from, count })
const addresses = (from: number, count: number) => Array.from({ length: count }, (_, i) => wallet.address(from + i))

liveTest("the bundle's thread derives the wallet's addresses, one range after another", function* () {
  const derive = yield* derivingThread(pathToFileURL(built("chunks/deriver.js")))
  const warnings: Array<Error> = []
  process.on("warning", (warning) => warnings.push(warning))
  expect(yield* derive(range(0, 20))).toEqual(addresses(0, 20))
  for (let time = 0; time < 20; time++) yield* derive(range(0, 1))
  expect(yield* derive(range(2_000_000_000, 3))).toEqual(addresses(2_000_000_000, 3))
  // Node's word for listeners that were left behind.
  expect(warnings).toEqual([])
})

liveTest("a thread that cannot start, or has ended, is a failure at once", function* () {
  const derive = yield* derivingThread(pathToFileURL(built("chunks/nothing.js")))
  for (let time = 0; time < 2; time++) {
    const error = yield* Effect.flip(derive(range(0, 1)))
    expect(error).toBeInstanceOf(NoThread)
  }
})
