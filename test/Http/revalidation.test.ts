import { expect } from "@effect/vitest"
import { TestApi, testApp } from "../lib/api.ts"
import { liveSuite } from "../lib/scopedTest.ts"

liveSuite(testApp(), "a cacheable response", (test) => {
  const paths = ["/docs", "/docs/payments", "/openapi.json"]

  test("has its own strong ETag, and is not sent to a client that has the current version", function* () {
    const { call } = yield* TestApi
    const tags = new Set<string>()
    for (const path of paths) {
      const { headers, text } = yield* call("GET", path)
      const tag = headers.etag ?? ""
      expect(tag).toMatch(/^"[\w-]{22}"$/)
      tags.add(tag)
      const head = yield* call("HEAD", path)
      expect(head).toMatchObject({ status: 200, text: "", headers: { etag: tag, "cache-control": "no-cache" } })
      expect(head.headers["content-length"]).toBe(String(Buffer.byteLength(text)))
      const ask = (method: string, ifNoneMatch: string | ReadonlyArray<string>) =>
        call(method, path, { headers: { "if-none-match": ifNoneMatch } })
      for (const has of [tag, `W/${tag}`, "*", `"a", "b,c" ,${tag}`, ['"a"', tag]]) {
        for (const method of ["GET", "HEAD"]) {
          const kept = yield* ask(method, has)
          expect([kept.status, kept.text], `${method} ${has}`).toEqual([304, ""])
          expect(kept.headers).toMatchObject({ etag: tag, "cache-control": "no-cache" })
          expect(Object.keys(kept.headers)).not.toContain("content-type")
          expect(Object.keys(kept.headers)).not.toContain("content-length")
        }
      }
      for (const other of ['"a"', tag.replaceAll('"', ""), `"a,${tag.slice(1)}`, "", "**", "W/"]) {
        const sent = yield* ask("GET", other)
        expect([sent.status, sent.text === text], other).toEqual([200, true])
      }
    }
    expect(tags.size).toBe(paths.length)
  })

  test("other responses are not cacheable: they have no ETag, and a condition has no effect", function* () {
    const { call, newKey } = yield* TestApi
    const key = yield* newKey()
    for (const path of ["/healthz", "/v1/payments", "/docs/search?q=a"]) {
      const answered = yield* call("GET", path, { key, headers: { "if-none-match": "*" } })
      expect(answered.status).toBe(200)
      expect(answered.headers).toMatchObject({ "cache-control": "no-store" })
      expect(answered.headers.etag).toBeUndefined()
    }
    const wrong = yield* call("GET", "/openapi.json?a=1", { headers: { "if-none-match": "*" } })
    expect(wrong.status).toBe(400)
    expect((yield* call("POST", "/docs", { headers: { "if-none-match": "*" } })).status).toBe(405)
  })
})
