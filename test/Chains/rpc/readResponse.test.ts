import { describe, expect, it } from "vitest"
import {
  boundsOfBatch,
  ResponseTooLarge,
  readErrorResponse,
  readResponse
} from "../../../src/Chains/rpc/readResponse.ts"

const parts = async function* (text: string, size = 65_536): AsyncIterable<Uint8Array> {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

const call = (method: string, ...params: ReadonlyArray<unknown>) => ({ method, params })
const fullBlock = boundsOfBatch([call("eth_getBlockByNumber", "0x1", true)])

/** The reason why a response is not read, by the bounds of a batch. */
const excess = (text: string, ...calls: ReadonlyArray<ReturnType<typeof call>>) =>
  readResponse(parts(text), boundsOfBatch(calls)).then(
    () => undefined,
    (error: unknown) => (error instanceof ResponseTooLarge ? error.excess : error)
  )

describe("a response body", () => {
  it("is read the same whether it is small or large", async () => {
    const transaction = {
      hash: `0x${"a".repeat(64)}`,
      input: "0x",
      value: "0x0",
      note: 'quoted "\\" é 𝄞',
      n: 1.5e3,
      no: null
    }
    for (const count of [1, 20_000]) {
      const value = [{ id: 0, result: { transactions: Array.from({ length: count }, () => transaction) } }]
      const text = JSON.stringify(value)
      for (const size of [65_536, 65_537]) {
        const answer = await readResponse(parts(text, size), fullBlock)
        expect(answer).toEqual({ bytes: Buffer.byteLength(text), value })
      }
    }
  })

  it.each([
    "[",
    '{"a"',
    "",
    "[1]]",
    "nul",
    "[1] 2",
    `["${"a".repeat(600_000)}`,
    `[${"1,".repeat(300_000)}]`,
    `{"a":1,${'"b":"c",'.repeat(80_000)}`
  ])("is nothing where it is not JSON (%#)", async (text) => {
    expect((await readResponse(parts(text), fullBlock)).value).toBeUndefined()
  })

  it("is bounded by what its calls can bring", async () => {
    const deep = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`
    const large = (bytes: number) => `"${"a".repeat(bytes)}"`
    const many = (values: number) => `[${"1,".repeat(values)}1]`
    const header = call("eth_getBlockByNumber", "0x1", false)
    const block = call("eth_getBlockByNumber", "0x1", true)
    const trace = call("debug_traceTransaction", "0x1")
    const number = call("eth_gasPrice")
    expect(await excess(deep(17), block)).toBe("depth")
    expect(await excess(deep(16), block)).toBeUndefined()
    expect(await excess(deep(2_050), trace)).toBeUndefined()
    expect(await excess(deep(2_101), trace)).toBe("depth")
    expect(await excess(large(65 * 1024), number)).toBe("bytes")
    expect(await excess(large(65 * 1024), number, number)).toBeUndefined()
    expect(await excess(large(3 * 2 ** 20), header)).toBe("bytes")
    expect(await excess(large(20 * 2 ** 20), block)).toBeUndefined()
    expect(await excess(large(25 * 2 ** 20), block, block)).toBe("bytes")
    expect(await excess(many(3_000), number)).toBe("values")
    expect(await excess(many(400_000), block)).toBeUndefined()
    expect(await excess(many(500_001), block, block)).toBe("values")
  })

  it("does not block the event loop while a large one is parsed", async () => {
    const text = `[${Array.from({ length: 100_000 }, (_, i) => `{"key ${i}":"${"a".repeat(20)}"}`).join(",")}]`
    let turns = 0
    const count = () => {
      turns++
      timer = setImmediate(count)
    }
    let timer = setImmediate(count)
    await readResponse(parts(text), fullBlock)
    clearImmediate(timer)
    // Five chains may do so concurrently.
    expect(turns).toBeGreaterThanOrEqual(Math.floor(Buffer.byteLength(text) / 16_384))
  })
})

describe("the body of an error status", () => {
  it("is read up to the bounds of a small response", async () => {
    expect(await readErrorResponse(parts('{"error":1}'))).toEqual({
      bytes: 11,
      text: '{"error":1}',
      value: { error: 1 }
    })
    const page = await readErrorResponse(parts("<p>".repeat(100_000)))
    expect(page.value).toBeUndefined()
    expect(page.bytes).toBeLessThanOrEqual(2 * 65_536)
    expect(page.text.startsWith("<p><p>")).toBe(true)
    expect((await readErrorResponse(parts(`${"[".repeat(100)}${"]".repeat(100)}`))).value).toBeUndefined()
  })
})
