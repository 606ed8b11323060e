import { cpSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { chainNames } from "../../src/Domain/Chain.ts"
import { waitForLog } from "../lib/daemon.ts"
import { waitUntil } from "../lib/postgresCluster.ts"
import { built, root } from "../lib/processes.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { temporaryFolder } from "../lib/store.ts"
import { tcpLine } from "../lib/tcpLine.ts"
import { type Unit, World } from "./world.ts"

/** Rounds of each way to lose what works: one, or as many as `npm run test:failover` wants. */
const { FAILOVER_ROUNDS } = process.env
const rounds = Number(FAILOVER_ROUNDS ?? "1")

/** Seconds that a shop is without an answer, at most: 10, where no other suite takes the machine meanwhile. */
const longest = FAILOVER_ROUNDS === undefined ? 60 : 10

const report = (what: string) =>
  Effect.sync(() => {
    if (FAILOVER_ROUNDS !== undefined) process.stdout.write(`${what}\n`)
  })

/** Payments on all chains that are paid, and that the node that works knows of. */
const paidRound = Effect.gen(function* () {
  const world = yield* World
  const payments = yield* Effect.forEach(chainNames, world.create)
  yield* Effect.forEach(payments, (payment) => world.payAndMine(payment), { concurrency: "unbounded" })
  yield* Effect.forEach(payments, (payment) => world.told(payment, "payment.detecting"))
  return payments
})

/** Waits for the next payment of the shop, by this node if one is given. */
const recovered = Effect.fnUntraced(function* (how: string, since: number, by?: Unit) {
  const { to } = yield* (yield* World).served(since, by)
  const seconds = (to - since) / 1000
  yield* report(`${how}: works again after ${seconds.toFixed(1)} s`)
  expect(seconds).toBeLessThan(longest)
})

/** Judges all that was acknowledged, and how long the shop has failed since this moment. */
const checked = Effect.fnUntraced(function* (how: string, since: number) {
  const world = yield* World
  yield* world.check
  const failed = world.longestFailure(since)
  yield* report(`${how}: the shop failed for ${failed.toFixed(1)} s`)
  // systemd starts all of them again: none has asked for an operator.
  expect(world.units.flatMap(({ ends }) => ends()).filter(({ code }) => code === 2)).toEqual([])
  expect(failed).toBeLessThan(longest)
})

/** A copy of the program that is a later version, with another schema. */
const laterVersion = Effect.map(temporaryFolder, (folder) => {
  const copy = join(folder, "build")
  cpSync(join(root, built("")), copy, { recursive: true })
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"))
  const changes = [
    [/^ {2}version: "[^"]+",$/m, '  version: "99.0.0",'],
    [/"0001_start": (\w+)/, '"0001_start": $1, "0002_later": ["CREATE TABLE later (a INTEGER)"]']
  ] as const
  const made = readdirSync(join(copy, "chunks")).flatMap((name) => {
    const file = join(copy, "chunks", name)
    const text = name.endsWith(".js") ? readFileSync(file, "utf8") : ""
    return changes.filter(([from]) => from.test(text)).map(([from, to]) => writeFileSync(file, text.replace(from, to)))
  })
  expect(made.length).toBe(changes.length)
  return join(copy, "tilld.js")
})

type Loss = (active: Unit) => Effect.Effect<unknown, never, World>

/** Stops the process of a node at a moment when a transaction of it is open, which no later answer of PostgreSQL ends. */
const stopInTransaction: Loss = ({ process }) =>
  Effect.gen(function* () {
    const { server } = yield* World
    const open = server().ask<{ xact: string }>(
      "shop",
      "SELECT pid || '/' || xact_start AS xact FROM pg_stat_activity WHERE datname = 'shop' AND state = 'idle in transaction'"
    )
    while (true) {
      yield* process().signal("SIGSTOP")
      const [first] = yield* open
      // What it had sent may end it yet.
      yield* Effect.sleep("20 millis")
      const [second] = yield* open
      if (first !== undefined && first.xact === second?.xact) return
      yield* process().signal("SIGCONT")
      yield* Effect.sleep("3 millis")
    }
  })

/** How a node that works is lost. */
const losses: Readonly<Record<string, Loss>> = {
  "is killed": ({ process }) => process().end("SIGKILL"),
  "is stopped by SIGSTOP": ({ process }) => process().signal("SIGSTOP"),
  "is stopped by SIGSTOP within a transaction": stopInTransaction,
  "hands over at a SIGTERM": ({ process }) => process().signal("SIGTERM"),
  "is cut off from the database": ({ line }) => Effect.sync(line.cut),
  "hears no more of the database, nor that of it": ({ line }) => Effect.sync(line.silence)
}

liveSuite(World.layer, "nothing acknowledged is lost or done twice", (test) => {
  for (const [how, lose] of Object.entries(losses)) {
    test(`where the node that works ${how}, and the other one goes on`, function* () {
      const world = yield* World
      for (let round = 1; round <= rounds; round++) {
        const { active, other } = yield* world.settled
        yield* paidRound
        const ended = active.ends().length
        const mended = Effect.sync(active.line.mend)
        yield* lose(active)
        const lostAt = performance.now()
        const goesOn = active.process().signal("SIGCONT")
        yield* Effect.ensuring(recovered(how, lostAt, other), goesOn)
        // What was stopped or cut off finds that it is not wanted any more, and ends.
        yield* Effect.ensuring(world.ended(active, ended), mended)
        yield* report(`${how}: has ended after ${((performance.now() - lostAt) / 1000).toFixed(1)} s`)
        yield* checked(how, lostAt)
      }
    })
  }

  for (const how of ["fast", "immediate"] as const) {
    test(`where PostgreSQL is stopped (${how}), and begins again`, function* () {
      const world = yield* World
      for (let round = 1; round <= rounds; round++) {
        yield* world.settled
        yield* paidRound
        yield* world.server().stop(how)
        yield* world.server().start
        const since = performance.now()
        yield* recovered(`PostgreSQL restarts (${how})`, since)
        yield* checked(`PostgreSQL restarts (${how})`, since)
      }
    })
  }

  test("where the synchronous standby of PostgreSQL is promoted", function* () {
    const world = yield* World
    for (let round = 1; round <= rounds; round++) {
      yield* world.settled
      const primary = world.server()
      const standby = yield* world.standby(primary.port)
      yield* primary.ask("postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'")
      yield* primary.ask("postgres", "SELECT pg_reload_conf()")
      yield* waitUntil(primary, "SELECT FROM pg_stat_replication WHERE sync_state = 'sync'")
      yield* paidRound
      yield* primary.stop("immediate")
      yield* standby.ask("postgres", "SELECT pg_promote()")
      yield* world.turnTo(standby)
      const since = performance.now()
      yield* recovered("a synchronous standby is promoted", since)
      yield* checked("a synchronous standby is promoted", since)
    }
  })

  test("where an asynchronous standby is promoted, but for what it had not got: money for that is an exception", function* () {
    const world = yield* World
    for (let round = 1; round <= rounds; round++) {
      yield* world.settled
      const primary = world.server()
      const replication = yield* tcpLine(primary.port)
      const standby = yield* world.standby(replication.port)
      const kept = yield* paidRound
      for (const { id } of kept) {
        yield* waitUntil(standby, `SELECT FROM tilld.payments WHERE id = '${id}' AND status = 'detecting'`, "shop")
      }
      replication.cut()
      // Confirmed twice, then: by events with one id.
      for (const { id } of kept) world.retold.add(id)
      yield* world.mineAll
      yield* Effect.forEach(kept, (payment) => world.told(payment, "payment.confirmed"))
      const before = yield* world.create("base")
      const after = yield* world.create("polygon")
      yield* world.payAndMine(before)
      yield* world.told(before, "payment.detecting")
      yield* primary.stop("immediate")
      yield* standby.ask("postgres", "SELECT pg_promote()")
      const present = yield* standby.ask<{ id: string }>("shop", "SELECT id FROM tilld.payments")
      const ids = new Set(present.map(({ id }) => id))
      for (const id of world.acknowledged.keys()) if (!ids.has(id)) world.lost.add(id)
      expect([before, after].filter(({ id }) => !world.lost.has(id))).toEqual([])
      yield* world.turnTo(standby)
      const since = performance.now()
      yield* recovered("an asynchronous standby is promoted", since)
      yield* world.payAndMine(after)
      yield* checked("an asynchronous standby is promoted", since)
      for (const { address, amount, chain } of [before, after]) {
        const found = yield* world.exceptionAt(address)
        expect(found).toMatchObject({ kind: "unknown_payment", chain, amount })
      }
    }
  })

  test("where a later version is installed on the standby first: one that does not know its schema never works again", function* () {
    const world = yield* World
    const { active, other } = yield* world.settled
    const binary = yield* laterVersion
    other.install(binary)
    yield* other.process().end("SIGTERM")
    yield* world.settled
    yield* paidRound
    const since = performance.now()
    yield* active.process().signal("SIGTERM")
    yield* recovered("a later version takes over", since, other)
    const lease = "SELECT epoch FROM tilld.lease WHERE version = '99.0.0'"
    yield* waitUntil(world.server(), lease, "shop")

    // The former version waits, and says why.
    yield* world.says(active, "this node could not take over, and its log says why")
    const { annotations } = yield* waitForLog(active.process(), "this node is a standby")
    expect(annotations["reason"]).toContain("active is")
    yield* active.process().line("which knows schema 1")

    // Alone it gives up: an operator has to install the later one there, too.
    const ended = active.ends().length
    yield* other.process().end("SIGKILL")
    expect(yield* world.ended(active, ended)).toMatchObject({ code: 2, stderr: expect.stringContaining("schema 2") })
    active.install(binary)
    yield* world.check
    yield* waitUntil(world.server(), lease, "shop")
  })
})
