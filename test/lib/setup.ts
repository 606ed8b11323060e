import { effect, it, layer, live, prop, scoped, scopedLive } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import { afterAll, expect, vi } from "vitest"

// `layer` puts methods with its own services on the one `it` that all suites of a process share: each begins with its own.
Object.assign(it, { effect, layer, live, prop, scoped, scopedLive })

const { TEST_POSTGRES, TEST_SEED } = process.env

// The stores of all suites are in PostgreSQL then, see postgresServer.ts.
if (TEST_POSTGRES !== undefined) {
  const { dropAll, layerAt } = await import("./postgres.ts")
  vi.doMock("../../src/Sql.ts", async (original) => ({ ...(await original<object>()), layer: layerAt }))
  afterAll(() => Effect.runPromise(dropAll))
}
fc.configureGlobal({ seed: Number(TEST_SEED) })

/** Suites of these rooms that start no process, so that a test of theirs which hangs fails soon. */
const inProcess = /\/test\/(Auth|Chains|Domain|Events|Payments|Quotes|Settings|Webhooks)\/(?!.*\.anvil\.test)/
// Their slowest test took 25 seconds where eight processes shared two cores. For this file only: vitest resets it.
if (inProcess.test(expect.getState().testPath ?? "")) vi.setConfig({ testTimeout: 60_000 })
