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
  /** Whether the disk is full. */
  isFull: boolean
  /** Messages that were read. */
  taken: number
  publicUrl?: string
}

const makeWorld = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  const caFile = join(folder, "ca.pem")
  const receiver = yield* startReceiver({ caFile }).pipe(Effect.provide(NodeFileSystem.layer))
  const world: World = { receiver, caFile, path: join(folder, "tilld.db"), health: [], isFull: false, taken: 0 }
  return world
})

const full = new StoreUnavailable({ code: "SQLITE_FULL", message: "full" })
const writerOf = (world: World) =>
  Layer.effect(
    Writer,
    Effect.map(Writer, ({ write }): Writer["Type"] => ({ write: (command) => (world.isFull ? full : write(command)) }))
  )

/** The daemon's alerts, on a store that takes writes or is full. */
const alertsOf = (world: World) => {
  const { caFile, health, path, publicUrl = "http://localhost", receiver } = world
  return Layer.provide(conditionsLayer, writerOf(world)).pipe(
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
}

/** Runs `life` beside the worker. */
const living = <A, E, R>(world: World, life: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const { run } = yield* Conditions
    yield* Effect.forkScoped(run)
    return yield* life
  }).pipe(Effect.scoped, Effect.provide(alertsOf(world)))

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

const untilAsleep = Effect.repeat(Effect.zipRight(eventLoopTurn, isAsleep), { until: (asleep) => asleep })

/** The next message, once the worker has recorded the result. */
const next = (world: World) =>
  Effect.gen(function* () {
    yield* arrival(world)
    yield* untilAsleep
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

/** What is wrong now. */
const found = Effect.flatMap(Conditions, ({ now }) => Effect.map(now, (all) => all.map(keyOf)))
const noted = Effect.map(
  rows<{ said: string }>("SELECT act || ' ' || (detail ->> 'condition') AS said FROM audit ORDER BY sequence"),
  (acts) => acts.map(({ said }) => said)
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
      // What is gone and not over yet is not wrong now.
      const [now, closed, audit] = yield* living(
        world,
        Effect.all([Effect.zipRight(untilAsleep, found), next(world), noted])
      )
      expect(now).toEqual(["exceptions_open overpaid", "chain_troubled base.live"])
      expect(closed).toEqual(["alert.closed", "chain_not_read base.live"])
      expect(audit).toEqual([
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
    yield* living(
      world,
      execute("INSERT INTO alerts (id, state) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET state = excluded.state", [
        state
      ])
    )
    expect(yield* living(world, next(world))).toEqual(["alert.opened", "proxy_gone"])
    const stored = living(world, rows<{ state: string }>("SELECT state FROM alerts"))
    expect((yield* stored).map((row) => JSON.parse(row.state).answered)).toEqual([world.publicUrl])
  })

  clockTest("a receiver of alerts that has refused a message twice is a condition, until it takes it", function* () {
    const world = yield* makeWorld
    yield* world.receiver.behave(() => 500)
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

  clockTest(
    "the alert about a store that takes no writes arrives at once, and the audit log has it once it can be stored",
    function* () {
      const world = yield* makeWorld
      world.isFull = true
      yield* living(
        world,
        Effect.gen(function* () {
          ;(yield* Workers).condition("store", () => (world.isFull ? "the disk is full" : undefined))
          expect(yield* next(world)).toEqual(["alert.opened", "store_refuses_writes"])
          expect(yield* noted).toEqual([])
          world.isFull = false
          expect(yield* next(world)).toEqual(["alert.closed", "store_refuses_writes"])
          expect(yield* noted).toEqual([
            "condition begins store_refuses_writes",
            "condition is over store_refuses_writes"
          ])
        })
      )
    }
  )
})
