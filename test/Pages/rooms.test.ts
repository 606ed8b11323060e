import { brotliDecompressSync } from "node:zlib"
import { expect } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer } from "effect"
import { documentHandlers } from "../../src/Documents/Http.ts"
import type { PageRequest } from "../../src/Http/PageHandler.ts"
import { makePages, type PageRoom } from "../../src/Pages.ts"
import { Settings } from "../../src/Settings.ts"
import { clockTest, scopedTest } from "../lib/scopedTest.ts"
import { testSettings } from "../lib/settings.ts"

const request: PageRequest = {
  ...{ method: "GET", path: "/room", search: "", client: "192.0.2.1", requestId: "req_1", headers: {} },
  body: Buffer.from(""),
  hold: (wait) => wait,
  recognised: () => {}
}

clockTest("a room whose first client leaves while it loads is there for all others, and loaded once", function* () {
  const asked = yield* Deferred.make<void>()
  let loaded: (room: Effect.Effect<PageRoom>) => void = () => {}
  let loads = 0
  const load = () => {
    loads += 1
    Deferred.unsafeDone(asked, Effect.void)
    return new Promise<Effect.Effect<PageRoom>>((resolve) => {
      loaded = resolve
    })
  }
  const pages = yield* makePages([{ prefix: "/room", room: "checkout", load }])
  const ask = Effect.suspend(() => pages("/room")?.reply(request) ?? Effect.dieMessage("no page"))
  const leaving = yield* Effect.fork(ask)
  yield* Deferred.await(asked)
  const left = yield* Effect.fork(Fiber.interrupt(leaving))
  const staying = yield* Effect.fork(ask)
  loaded(Effect.succeed(() => Effect.succeed({ status: 200, headers: {}, text: "here" })))
  expect(Exit.isInterrupted(yield* Fiber.join(left))).toBe(true)
  expect(yield* Fiber.join(staying)).toMatchObject({ status: 200, text: "here" })
  expect(yield* ask).toMatchObject({ status: 200, text: "here" })
  expect(loads).toBe(1)
})

scopedTest(Layer.succeed(Settings, testSettings("")))(
  "of many first requests for the OpenAPI document only one makes it",
  function* () {
    const { openapi } = yield* documentHandlers
    // It reads nothing of its input.
    const one = Effect.suspend(() => openapi({} as never))
    const answers = yield* Effect.replicateEffect(one, 20, { concurrency: "unbounded" })
    expect(new Set(answers).size).toBe(1)
  }
)

clockTest(
  "pages are compressed for those who take it, but none of the portal, whose length would tell of its secrets",
  function* () {
    const text = `<p>${"long ".repeat(400)}</p>`
    const headers = { "content-type": "text/html; charset=utf-8", etag: '"one"' }
    const load = async () => Effect.succeed<PageRoom>(() => Effect.succeed({ status: 200, headers, text }))
    const pages = yield* makePages([
      { prefix: "/pay", room: "checkout", load },
      { prefix: "/portal", room: "portal", load }
    ])
    const ask = (path: string, encodings: string) => {
      const reply = pages(path)?.reply({ ...request, path, headers: { "accept-encoding": encodings } })
      return reply ?? Effect.dieMessage("no page")
    }
    const packed = yield* ask("/pay/x", "gzip, br")
    expect(packed.headers).toMatchObject({ "content-encoding": "br", vary: "accept-encoding" })
    expect(brotliDecompressSync(Buffer.concat(packed.bytes ?? [])).toString()).toBe(text)
    // Other bytes have another tag.
    expect(packed.headers["etag"]).toBe('"one.br"')
    expect(Buffer.concat(packed.bytes ?? []).length).toBeLessThan(text.length / 3)
    const plain = yield* ask("/pay/x", "gzip")
    expect(plain).toMatchObject({ text, headers: { vary: "accept-encoding" } })
    expect(plain.headers).not.toHaveProperty("content-encoding")
    expect(yield* ask("/portal/x", "br")).toEqual({ status: 200, headers, text })
  }
)

clockTest("the root leads people to the portal, and tells programs where everything is", function* () {
  const pages = yield* makePages<never>([])
  const ask = (accept: string) =>
    pages("/")?.reply({ ...request, path: "/", headers: { accept } }) ?? Effect.dieMessage("")
  expect(yield* ask("text/html,application/xhtml+xml,*/*;q=0.8")).toMatchObject({
    status: 303,
    headers: { location: "portal", vary: "accept" }
  })
  const { status, text } = yield* ask("*/*")
  expect(status).toBe(200)
  expect(JSON.parse(text)).toEqual({
    ...{ name: "tilld", api: "v1", docs: "docs", openapi: "openapi.json", portal: "portal" }
  })
  const posted = yield* pages("/")?.reply({ ...request, method: "POST", path: "/" }) ?? Effect.dieMessage("")
  expect(posted).toMatchObject({ status: 405, headers: { allow: "GET, HEAD" } })
  expect(pages("/v1/payments")).toBeUndefined()
})
