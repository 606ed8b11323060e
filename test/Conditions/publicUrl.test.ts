// What payers meet at server.public_url, from real listeners with certificates of their own.
import { X509Certificate } from "node:crypto"
import { expect } from "@effect/vitest"
import { Chunk, Clock, Effect, Either, Exit, Scope, TestClock } from "effect"
import { lookAtPublicUrl, makePublicUrl } from "../../src/Conditions/publicUrl.ts"
import { keyOf } from "../../src/Conditions/standing.ts"
import { eventLoopTurn } from "../../src/lib/waiting.ts"
import { type Identity, makeAuthority } from "../../src/Sandbox/Authority.ts"
import { startRawReceiver } from "../lib/rawReceiver.ts"
import { clockTest } from "../lib/scopedTest.ts"
import { testSettings } from "../lib/settings.ts"

const day = 86_400_000

/** Waits until so many workers have looked, and wait for the next time. */
const untilAsleep = (workers: number, pause = 600_000) =>
  Effect.gen(function* () {
    const next = (yield* Clock.currentTimeMillis) + pause
    yield* Effect.repeat(Effect.zipRight(eventLoopTurn, TestClock.sleeps()), {
      until: (sleeps) => Chunk.filter(sleeps, (at) => at === next).length === workers
    })
  })

const at = (identity: Identity) => startRawReceiver(identity, () => undefined)

clockTest("the certificate is judged by its dates and its name", function* () {
  const { issue } = yield* makeAuthority
  const mine = yield* issue(["127.0.0.1"])
  const { port } = yield* at(mine)
  const others = yield* at(yield* issue(["shop.example"]))
  const end = Date.parse(new X509Certificate(mine.certificate).validTo)
  const said = (url: string) =>
    Effect.map(
      lookAtPublicUrl(url),
      Either.map((found) => found.map((one) => `${keyOf(one)}: ${one.summary}`))
    )
  const url = `https://127.0.0.1:${port}`
  yield* TestClock.setTime(end - 15 * day)
  expect(yield* said(url)).toEqual(Either.right([]))
  expect(yield* said(`https://127.0.0.1:${others.port}`)).toEqual(
    Either.right([
      `certificate_bad: https://127.0.0.1:${others.port} shows a certificate of another name: DNS:shop.example`
    ])
  )
  yield* TestClock.setTime(end - 13.5 * day)
  expect(yield* said(url)).toEqual(Either.right([expect.stringMatching(/^certificate_ends: .*, in 13 days$/)]))
  yield* TestClock.setTime(end + 1000)
  expect(yield* said(url)).toEqual(Either.right([expect.stringMatching(/^certificate_bad: .* that expired on /)]))
  expect(yield* said("https://127.0.0.1:1")).toEqual(Either.left(expect.stringContaining("ECONNREFUSED")))
})

clockTest("a proxy that has answered once, maybe before a restart, is missed; one that never did is not", function* () {
  const { issue } = yield* makeAuthority
  const { server } = testSettings("unused")
  const watched = (publicUrl: string) => makePublicUrl({ server: { ...server, publicUrl } })
  const identity = yield* issue(["127.0.0.1"])
  const scope = yield* Scope.make()
  const { port } = yield* Scope.extend(at(identity), scope)
  const url = `https://127.0.0.1:${port}`
  const [known, unknown] = [watched(url), watched("https://127.0.0.1:1")]
  for (const { run } of [known, unknown]) yield* Effect.forkScoped(run)
  yield* untilAsleep(2)
  expect(known.conditions()).toEqual([])
  expect([known.answered(), unknown.answered()]).toEqual([url, undefined])
  yield* Scope.close(scope, Exit.void)
  yield* TestClock.adjust("10 minutes")
  yield* untilAsleep(1, 60_000)
  expect(known.conditions().map(keyOf)).toEqual(["proxy_gone"])
  expect(unknown.conditions()).toEqual([])

  const [restarted, moved] = [watched(url), watched("https://127.0.0.1:1")]
  for (const { remember, run } of [restarted, moved]) {
    remember(known.answered())
    yield* Effect.forkScoped(run)
  }
  yield* untilAsleep(2, 60_000)
  expect(restarted.conditions().map(keyOf)).toEqual(["proxy_gone"])
  expect(moved.conditions()).toEqual([])
})
