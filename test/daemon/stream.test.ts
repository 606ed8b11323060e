import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { type Daemon, homeOn, rows, serveHere } from "../lib/daemon.ts"
import { openStream } from "../lib/eventStream.ts"
import { liveTest } from "../lib/scopedTest.ts"

liveTest("a stream delivers each event once and in order, through disconnections and a restart", function* () {
  const { home } = yield* homeOn("base")
  const daemon = yield* serveHere(home)
  const order = { chain: "base", currency: "ETH", amount: "1" } as const
  const expected: Array<string> = []
  const create = (on: Daemon) =>
    Effect.map(on.create(order), ({ id }) => {
      expected.push(id)
    })
  yield* daemon.create(order)
  const first = yield* openStream(daemon)
  const beginning = yield* first.next
  expect(beginning).toMatchObject({ id: expect.stringMatching(/^evt_/), data: "" })
  yield* create(daemon)
  const one = yield* first.next
  first.response.destroy()
  yield* Effect.replicateEffect(create(daemon), 40)
  const seen = [one]
  const second = yield* openStream(daemon, one.id)
  expect(yield* second.next).toMatchObject({ id: one.id, data: "" })
  for (let i = 0; i < 20; i++) seen.push(yield* second.next)

  // A stop does not wait for the stream, and the stream ends in order.
  expect((yield* daemon.end("SIGTERM")).code).toBe(0)
  yield* second.ended
  expect(second.response.complete).toBe(true)

  const again = yield* serveHere(home, daemon.key)
  const third = yield* openStream(again, seen.at(-1)?.id)
  yield* third.next
  for (let i = 0; i < 20; i++) seen.push(yield* third.next)
  yield* create(again)
  seen.push(yield* third.next)
  expect(seen.map(({ data }) => JSON.parse(data).data.id)).toEqual(expected)
  for (const { data, event, id } of seen) {
    expect([JSON.parse(data).id, JSON.parse(data).event]).toEqual([id, event])
    const [stored] = yield* rows<{ body: string }>(home, "SELECT body FROM events WHERE id = ?", id)
    expect(data).toBe(stored?.body)
  }
})
