import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { expect } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { folderWithTilld } from "../lib/packed.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { root, start } from "../lib/tilld.ts"

/** A merchant's program: a folder with tilld as it is shipped, and nothing that tilld depends on. */
class Program extends Context.Tag("test/Program")<Program, string>() {
  static readonly layer = Layer.scoped(Program, folderWithTilld)
}

const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc")

/** What a TypeScript program of a merchant does with the client. */
const source = `
import { createClient, toBaseUnits, TilldError, TilldConnectionError, verifyWebhook, WebhookVerificationError, type InvoiceEvent, type Payment, type WebhookEvent } from "tilld/client"

const tilld = createClient({ baseUrl: "https://pay.example.com", apiKey: "svc_test_x", fetch, maxRetries: 1 })
export const pay = async (signal: AbortSignal): Promise<Payment | string | undefined> => {
  try {
    const quote = await tilld.quotes.create({ fromCurrency: "EUR", toCurrency: "USDC", amount: "49.90" }, { signal })
    const amount = toBaseUnits(quote.chargeAmount, "USDC")
    return await tilld.payments.create({ merchantRef: "1", amount, currency: "USDC", chain: quote.chain, quoteId: quote.id })
  } catch (error) {
    if (error instanceof TilldError) return error.code === "RATE_LIMITED" ? String(error.retryAfter) : error.requestId
    if (error instanceof TilldConnectionError) return error.message
    throw error
  }
}
export const open = async (): Promise<number> => {
  let count = 0
  for await (const { exceptions } of tilld.payments.listAll({ status: "pending" })) count += exceptions?.length ?? 1
  return count
}
export const receive = async (body: Uint8Array, header: string | string[] | undefined): Promise<WebhookEvent | InvoiceEvent | string> => {
  const event = await verifyWebhook(body, header, ["whsec_new-secret-of-mine", "whsec_old-secret-of-mine"])
  return event.event === "test" ? event.message : event
}
export const isRefused = (error: unknown): boolean => error instanceof WebhookVerificationError
// @ts-expect-error MATIC is for quotes only
export const wrong = tilld.payments.create({ merchantRef: "1", amount: "1", currency: "MATIC", chain: "polygon" })
// @ts-expect-error an amount is a string
export const number = tilld.payments.create({ merchantRef: "1", amount: 1, currency: "ETH", chain: "base" })
`

liveSuite(Program.layer, "tilld/client as it is shipped", (test, it) => {
  test("is imported by plain Node where nothing else is installed", function* () {
    const cwd = yield* Program
    expect(readdirSync(join(cwd, "node_modules"))).toEqual(["tilld"])
    writeFileSync(
      join(cwd, "main.mjs"),
      `import * as client from "tilld/client"
        import { readFileSync } from "node:fs"
        const [{ body, secret, signature }] = JSON.parse(readFileSync(process.argv[2], "utf8"))
        const event = await client.verifyWebhook(body, signature, secret)
        const tilld = client.createClient({ baseUrl: "http://127.0.0.1:9", apiKey: "svc_test_x", maxRetries: 0 })
        const error = await tilld.payments.list().catch((error) => error)
        const failed = error instanceof client.TilldConnectionError
        console.log(JSON.stringify({ names: Object.keys(client).sort(), id: event.id, failed }))`
    )
    const vectors = join(root, "test/vectors/webhook.json")
    const ended = yield* Effect.flatMap(start(process.execPath, ["main.mjs", vectors], { cwd }), ({ ended }) => ended)
    expect(ended.stderr).toBe("")
    expect(JSON.parse(ended.stdout)).toEqual({
      names: [
        "TilldConnectionError",
        "TilldError",
        "WebhookTimestampError",
        "WebhookVerificationError",
        "createClient",
        "toBaseUnits",
        "verifyWebhook"
      ],
      id: "evt_4JqJ2mCwT1yGkZb6rXn0aQ",
      failed: true
    })
  })

  test("imports nothing, and is in none of the daemon's files", function* () {
    const dist = join(yield* Program, "node_modules/tilld/dist")
    const shipped = (name: string) => readFileSync(join(dist, name), "utf8")
    for (const name of ["client.js", "client.d.ts"]) {
      expect(shipped(name)).not.toMatch(/^import |\bimport\(|\brequire\(|\bfrom "/m)
    }
    expect(shipped("client.js")).not.toMatch(/effect/i)
    expect(shipped("client.js").length).toBeLessThan(21_000)
    const files = readdirSync(join(dist, "builds"), { recursive: true, encoding: "utf8" })
    const daemon = files.filter((name) => name.endsWith(".js")).map((name) => `builds/${name}`)
    expect(daemon.length).toBeGreaterThan(5)
    expect(daemon.filter((name) => shipped(name).includes("TilldConnectionError"))).toEqual([])
  })

  it.scoped.each([
    ["the DOM's types alone", ["--lib", "ES2022,DOM,DOM.AsyncIterable"]],
    ["Node's types alone", ["--lib", "ES2022", "--types", "node", "--typeRoots", join(root, "node_modules/@types")]]
  ] as const)("has complete types, with %s", ([, types]) =>
    Effect.gen(function* () {
      const cwd = yield* Program
      writeFileSync(join(cwd, "main.mts"), source)
      const strict = [
        "--strict",
        "--exactOptionalPropertyTypes",
        "--noUncheckedIndexedAccess",
        "--skipLibCheck",
        "false"
      ]
      const module = ["--noEmit", "--target", "ES2022", "--module", "NodeNext"]
      const args = [tsc, ...strict, ...module, ...types, "main.mts"]
      const ended = yield* Effect.flatMap(start(process.execPath, args, { cwd }), ({ ended }) => ended)
      expect(ended.stdout).toBe("")
      expect(ended.code).toBe(0)
    })
  )
})
