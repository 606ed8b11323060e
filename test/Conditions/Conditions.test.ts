import { join } from "node:path"
import { NodeFileSystem } from "@effect/platform-node"
import { describe, expect } from "@effect/vitest"
import { Chunk, Clock, Effect, Layer, Redacted, TestClock } from "effect"
import type { ChainHealth } from "../../src/Chains.ts"
import { alertSecret } from "../../src/Conditions/alerts.ts"
import { makeJudge } from "../../src/Conditions/judge.ts"
import { Conditions, keyOf } from "../../src/Conditions/standing.ts"
import { conditionsLayer } from "../../src/Conditions.ts"
import { eventLoopTurn } from "../../src/lib/waiting.ts"
import { type Received, type Receiver, startReceiver, verifySignature } from "../../src/Sandbox/Receiver.ts"
import { Secrets } from "../../src/Secrets.ts"
import { MasterKey } from "../../src/Settings.ts"
import * as Sql from "../../src/Sql.ts"
import { type Db, Reader, StoreUnavailable, Writer } from "../../src/Sql.ts"
import { Workers } from "../../src/Telemetry/Workers.ts"
import { clockTest } from "../lib/scopedTest.ts"
import { testSettings, testSettingsLayer, testWebhooks } from "../lib/settings.ts"
import { execute, rows, storeAccount, temporaryFolder } from "../lib/store.ts"
import { chainsOf, waitingToCollect } from "./surroundings.ts"

interface World {
  readonly receiver: Receiver
  readonly path: string
  readonly caFile: string
  readonly health: Array<ChainHealth>
  /** Messages that were read. */
  taken: number
  publicUrl?: string
}

const makeWorld = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  const caFile = join(folder, "ca.pem")
  const receiver = yield* startReceiver({ caFile }).pipe(Effect.provide(NodeFileSystem.layer))
  const world: World = { receiver, caFile, path: join(folder, "tilld.db"), health: [], taken: 0 }
  return world
})

const full = Layer.succeed(Writer, { write: () => new StoreUnavailable({ code: "SQLITE_FULL", message: "full" }) })

/** The daemon's alerts, on a store that takes writes or is full. */
const alertsOf = ({ caFile, health, path, publicUrl = "http://localhost", receiver }: World, isFull = false) =>
  (isFull ? Layer.provide(conditionsLayer, full) : conditionsLayer).pipe(
    Layer.provideMerge(Secrets.layer),
    Layer.provideMerge(Layer.mergeAll(Sql.layer(path), Workers.layer)),
    Layer.provideMerge(
      Layer.mergeAll(
        testSettingsLayer(path, {
          alerts: { url: `${receiver.url}/alerts` },
          server: { ...testSettings(path).server, publicUrl },
          webhooks: testWebhooks({ extraCaFile: caFile })
        }),
        Layer.succeed(MasterKey, Redacted.make(new Uint8Array(32).fill(7))),
        chainsOf(() => [...health]),
        waitingToCollect(0n)
      )
    )
  )

/** Runs `life` beside the worker. */
const living = <A, E, R>(world: World, life: Effect.Effect<A, E, R>, isFull = false) =>
  Effect.gen(function* () {
    const { run } = yield* Conditions
    yield* Effect.forkScoped(run)
    return yield* life
  }).pipe(Effect.scoped, Effect.provide(alertsOf(world, isFull)))

/** Reads a message, which must be signed. */
const read = ({ receiver }: World) =>
  Effect.gen(function* () {
    const request: Received = yield* receiver.take
    expect(request).toMatchObject({ method: "POST", path: "/alerts" })
    const { alert, id, type } = JSON.parse(request.body.toString())
    expect(request.headers["webhook-id"]).toBe(id)
    expect(verifySignature(request, Redacted.value(yield* alertSecret))).toBe(true)
    return [type, alert.key]
  })

/** Whether the worker has finished its round, and waits for the next one. */
const isAsleep = Effect.zipWith(TestClock.sleeps(), Clock.currentTimeMillis, (sleeps, now) =>
  Chunk.contains(sleeps, now + 15_000)
)

/** Lets the worker run until an unread message has arrived. */
const arrival = (world: World) =>
  Effect.gen(function* () {
    while ((yield* world.receiver.all).length === world.taken) {
      yield* (yield* isAsleep) ? TestClock.adjust("15 seconds") : eventLoopTurn
    }
    world.taken++
  })

/** The next message, once the worker has recorded the result. */
const next = (world: World) =>
  Effect.gen(function* () {
    yield* arrival(world)
    yield* Effect.repeat(Effect.zipRight(eventLoopTurn, isAsleep), { until: (asleep) => asleep })
    return yield* read(world)
  })

const dead = (over: Partial<ChainHealth> = {}): ChainHealth => ({
  chain: "base",
  mode: "live",
  ready: false,
  reason: "no provider answers",
  providers: [],
  ...over
})

const overpaid = execute(
  `INSERT INTO exceptions (id, address, key, kind, chain, mode, currency, amount, opened_at)
   VALUES ('exc_1', '0x1', 'k', 'overpaid', 'base', 'live', 'ETH', '1', 0)`
)

describe("conditions", () => {
  clockTest(
    "the operator gets one signed message when a problem lasts, and one when it is over, across a restart",
    function* () {
      const world = yield* makeWorld
      world.health.push(dead())
      yield* living(
        world,
        Effect.gen(function* () {
          yield* storeAccount
          yield* overpaid
          expect(yield* next(world)).toEqual(["alert.opened", "exceptions_open overpaid"])
          expect(yield* next(world)).toEqual(["alert.opened", "chain_not_read base.live"])
        })
      )
      world.health.splice(0, 1, dead({ ready: true }))
      const noted = rows<{ said: string }>(
        "SELECT act || ' ' || (detail ->> 'condition') AS said FROM audit ORDER BY sequence"
      )
      const [closed, audit] = yield* living(world, Effect.zip(next(world), noted))
      expect(closed).toEqual(["alert.closed", "chain_not_read base.live"])
      expect(audit.map(({ said }) => said)).toEqual([
        "condition begins exceptions_open overpaid",
        "condition begins chain_not_read base.live",
        "condition is over chain_not_read base.live"
      ])
      expect((yield* world.receiver.all).length).toBe(3)
    }
  )

  clockTest("a message that is refused comes again with the same bytes, also after a restart", function* () {
    const world = yield* makeWorld
    yield* world.receiver.behave(() => 500)
    yield* living(world, Effect.zipRight(Effect.zipRight(storeAccount, overpaid), next(world)))
    yield* world.receiver.behave(() => 204)
    yield* living(world, next(world))
    const [first, second] = yield* world.receiver.all
    expect(second?.body).toEqual(first?.body)
    expect(second?.headers["webhook-id"]).toBe(first?.headers["webhook-id"])
  })

  clockTest("a proxy that has answered is told of once it is gone, also where a restart came between", function* () {
    const world = yield* makeWorld
    world.publicUrl = "https://127.0.0.1:1"
    const state = JSON.stringify({ seen: [], unsent: [], answered: world.publicUrl })
    yield* living(world, execute("INSERT OR REPLACE INTO alerts (id, state) VALUES (1, ?)", [state]))
    expect(yield* living(world, next(world))).toEqual(["alert.opened", "proxy_gone"])
    const stored = living(world, rows<{ state: string }>("SELECT state FROM alerts"))
    expect((yield* stored).map((row) => JSON.parse(row.state).answered)).toEqual([world.publicUrl])
  })

  clockTest("a receiver of alerts that has refused a message twice is a condition, until it takes it", function* () {
    const world = yield* makeWorld
    yield* world.receiver.behave(() => 500)
    const found = Effect.flatMap(Conditions, ({ now }) => Effect.map(now, (all) => all.map(keyOf)))
    const [once, twice] = yield* living(
      world,
      Effect.gen(function* () {
        yield* storeAccount
        yield* overpaid
        yield* next(world)
        const once = yield* found
        yield* next(world)
        return [once, yield* found]
      })
    )
    expect(once).toEqual(["exceptions_open overpaid"])
    expect(twice?.toSorted()).toEqual(["alerts_not_taken", "exceptions_open overpaid"])
  })

  clockTest("a message that was being sent during a crash is sent again after it, only once", function* () {
    const world = yield* makeWorld
    yield* world.receiver.behave(() => Effect.never)
    const sent = Effect.zipRight(arrival(world), world.receiver.take)
    yield* living(world, Effect.zipRight(Effect.zipRight(storeAccount, overpaid), sent))
    yield* world.receiver.behave(() => 204)
    yield* living(world, next(world))
    const [first, ...others] = yield* world.receiver.all
    expect(others.map(({ headers }) => headers["webhook-id"])).toEqual([first?.headers["webhook-id"]])
  })

  clockTest(
    "the last state read from the store stands while it cannot be read: no alert is reported as closed",
    function* () {
      const world = yield* makeWorld
      yield* Effect.gen(function* () {
        yield* storeAccount
        yield* overpaid
        const reader = yield* Reader
        const unreadable = new StoreUnavailable({ code: "SQLITE_IOERR", message: "disk I/O error" })
        let isReadable = true
        const db: Db = {
          ...reader,
          all: (...asked) => (isReadable ? reader.all(...asked) : unreadable),
          get: (...asked) => (isReadable ? reader.get(...asked) : unreadable)
        }
        const judge = yield* Effect.provideService(
          makeJudge(() => []),
          Reader,
          db
        )
        const before = yield* judge.look
        expect(before.map(keyOf)).toEqual(["exceptions_open overpaid"])
        isReadable = false
        expect(yield* judge.look).toEqual(before)
      }).pipe(Effect.provide(alertsOf(world)))
    }
  )

  clockTest("the alert about a store that takes no writes arrives although nothing can be stored", function* () {
    const world = yield* makeWorld
    const breaks = Effect.map(Workers, (workers) => workers.condition("store", () => "the disk is full"))
    const message = yield* living(world, Effect.zipRight(breaks, read(world)), true)
    expect(message).toEqual(["alert.opened", "store_refuses_writes"])
  })
})
