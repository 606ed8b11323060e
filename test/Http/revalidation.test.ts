import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestApi, testApp } from "../lib/api.ts"

layer(testApp(), { excludeTestServices: true })("a cacheable response", (it) => {
  const paths = ["/docs", "/docs/style.css", "/openapi.json"]

  it.effect("has its own strong ETag, and must be revalidated", () =>
    Effect.gen(function* () {
      const { call } = yield* TestApi
      const answers = yield* Effect.forEach(paths, (path) => call("GET", path), { concurrency: 1 })
      const tags = answers.map(({ headers }) => headers.etag)
      for (const tag of tags) expect(tag).toMatch(/^"[\w-]{22}"$/)
      expect(new Set(tags).size).toBe(3)
      for (const [i, path] of paths.entries()) {
        const head = yield* call("HEAD", path)
        expect(head).toMatchObject({ status: 200, text: "", headers: { etag: tags[i], "cache-control": "no-cache" } })
        expect(head.headers["content-length"]).toBe(String(Buffer.byteLength(answers[i]?.text ?? "")))
      }
    })
  )

  it.effect("is not sent to a client that has the current version", () =>
    Effect.gen(function* () {
      const { call } = yield* TestApi
      for (const path of paths) {
        const { headers, text } = yield* call("GET", path)
        const tag = headers.etag ?? ""
        const ask = (method: string, ifNoneMatch: string | ReadonlyArray<string>) =>
          call(method, path, { headers: { "if-none-match": ifNoneMatch } })
        for (const has of [tag, `W/${tag}`, "*", `"a", "b,c" ,${tag}`, ['"a"', tag]]) {
          for (const method of ["GET", "HEAD"]) {
            const kept = yield* ask(method, has)
            expect([kept.status, kept.text], `${method} ${has}`).toEqual([304, ""])
            expect(kept.headers).toMatchObject({ etag: tag, "cache-control": "no-cache" })
            expect(kept.headers["x-request-id"]).toMatch(/^req_/)
            expect(
              Object.keys(kept.headers).filter((name) => name.startsWith("content-t") || name.endsWith("-length"))
            ).toEqual([])
          }
        }
        for (const other of ['"a"', tag.replaceAll('"', ""), `"a,${tag.slice(1)}`, "", "**", "W/"]) {
          const sent = yield* ask("GET", other)
          expect([sent.status, sent.text === text], other).toEqual([200, true])
        }
      }
    })
  )

  it.effect("is none of the others: they have no ETag, and a condition has no effect", () =>
    Effect.gen(function* () {
      const { call, newKey } = yield* TestApi
      const key = yield* newKey()
      for (const path of ["/healthz", "/v1/payments"]) {
        const answered = yield* call("GET", path, { key, headers: { "if-none-match": "*" } })
        expect(answered.status).toBe(200)
        expect(answered.headers).toMatchObject({ "cache-control": "no-store" })
        expect(answered.headers.etag).toBeUndefined()
      }
      const wrong = yield* call("GET", "/docs?a=1", { headers: { "if-none-match": "*" } })
      expect(wrong.status).toBe(400)
      expect((yield* call("POST", "/docs", { headers: { "if-none-match": "*" } })).status).toBe(405)
    })
  )
})
