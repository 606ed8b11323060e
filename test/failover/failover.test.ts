import { copyFileSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect } from "@effect/vitest"
import { Effect, Fiber, Queue, Ref } from "effect"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import {
  confirmations,
  type Daemon,
  type Home,
  localChain,
  makeCall,
  makeHome,
  opened,
  pay,
  waitForLog
} from "../lib/daemon.ts"
import { makeInbox } from "../lib/inbox.ts"
import { administer, login, postgresServer, urlOf } from "../lib/postgres.ts"
import { type Running, startTilld } from "../lib/processes.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { temporaryFolder } from "../lib/store.ts"

/** Rounds of each way to lose the node that works: one, or as many as `npm run test:failover` wants. */
const { FAILOVER_ROUNDS = "1" } = process.env
const rounds = Number(FAILOVER_ROUNDS)

const hookPath = "/hook"

/** Seconds from the loss of a node to the first answer of the next one, at most. */
const longest = 10

/** A node beside that of a home, with the same keys. */
const besides = (home: Home, name: string) =>
  Effect.map(temporaryFolder, (folder): Home => {
    const config = join(folder, "tilld.toml")
    writeFileSync(
      config,
      readFileSync(home.config, "utf8").replaceAll(home.folder, folder).replace('"one"', `"${name}"`)
    )
    for (const file of ["master.key", "password"]) copyFileSync(join(home.folder, file), join(folder, file))
    return { ...home, folder, config, database: join(folder, "tilld.db") }
  })

interface Node {
  readonly home: Home
  readonly running: Running
}

const startNode = (home: Home): Effect.Effect<Node, never, import("effect").Scope.Scope> =>
  Effect.map(startTilld(["serve", "--config", home.config]), (running) => ({ home, running }))

/** Waits until a node is a standby; gives its base URL. */
const standbyOf = ({ running }: Node) =>
  Effect.map(waitForLog(running, "this node is a standby"), ({ annotations }) => `http://127.0.0.1:${annotations.port}`)

const world = Effect.gen(function* () {
  const port = yield* postgresServer()
  yield* administer(port, "postgres", "CREATE DATABASE shop")
  const inbox = yield* makeInbox()
  const chain = yield* localChain("base")
  const store = (folder: string) => `[database]
engine = "postgres"
url = "${urlOf(port, "shop")}"
password_file = "${folder}/password"
mark_folder = "${folder}/../marks-of-${folder.split("/").at(-1)}"
[node]
name = "one"
folder = "${folder}"`
  const plain = yield* makeHome({ chains: new Map([["base", chain]]), caFile: inbox.caFile })
  const text = readFileSync(plain.config, "utf8")
  writeFileSync(plain.config, text.replace(/\[database\]\npath = .*/, store(plain.folder)))
  writeFileSync(join(plain.folder, "password"), login.password, { mode: 0o600 })
  return { chain, inbox, one: plain, two: yield* besides(plain, "two") }
})

/** A shop that asks one node and then the other, and never stops; it keeps what was acknowledged. */
const shopOf = (bases: Ref.Ref<ReadonlyArray<string>>, key: string, tag: string) =>
  Effect.gen(function* () {
    const made: Array<PaymentObject> = []
    const bell = yield* Queue.unbounded<void>()
    const refused: Array<number> = []
    let n = 0
    const order = Effect.gen(function* () {
      const body = { merchantRef: `${tag} ${++n}`, amount: "25000000", currency: "USDC", chain: "base" }
      for (let tried = 0; ; tried++) {
        const all = yield* Ref.get(bases)
        const call = yield* makeCall(all[tried % all.length] ?? "", key)
        const answer = yield* Effect.option(
          Effect.timeout(
            Effect.sandbox(
              call<PaymentObject & { error?: { code: string; paymentId?: string } }>("POST", "/v1/payments", body)
            ),
            "2 seconds"
          )
        )
        if (answer._tag === "Some") {
          const { body: got, status } = answer.value
          if (status === 201) {
            made.push(got)
            return yield* bell.offer(undefined)
          }
          // The answer to a request before was lost: it was done once.
          if (status === 409) return
          refused.push(status)
        }
        yield* Effect.sleep("50 millis")
      }
    }).pipe(Effect.scoped)
    const fiber = yield* Effect.forkScoped(Effect.forever(order))
    return { made, refused, bell, next: bell.take, stop: Fiber.interrupt(fiber) }
  })

type Loss = (node: Running) => Effect.Effect<unknown>

/** How a node that works is lost, and whether its process is there afterwards. */
const losses: Readonly<Record<string, Loss>> = {
  "is killed": (node) => node.end("SIGKILL"),
  "is stopped by SIGSTOP": (node) => node.signal("SIGSTOP"),
  "hands over at a SIGTERM": (node) => node.signal("SIGTERM")
}

describe("of two nodes, where the one that works", () => {
  for (const [how, lose] of Object.entries(losses)) {
    liveTest(`${how}, the other one goes on: nothing acknowledged is lost, or done twice`, function* () {
      const { chain, inbox, one, two } = yield* world
      let active: Node = yield* startNode(one)
      let daemon: Daemon = yield* opened(one, active.running)
      const { key } = daemon
      for (let round = 1; round <= rounds; round++) {
        const next = active.home === one ? two : one
        const waiting = yield* startNode(next)
        const base = yield* standbyOf(waiting)
        const payment = yield* daemon.create({
          ...{ chain: "base", currency: "USDC", amount: "25000000", webhookUrl: inbox.url + hookPath }
        })
        const bases = yield* Ref.make<ReadonlyArray<string>>([daemon.url, base])
        const shop = yield* shopOf(bases, key, `${how} ${round}`)
        const hash = yield* pay(chain, payment)
        yield* chain.mine()
        yield* inbox.take(hookPath, payment, "payment.created", "payment.detecting")

        yield* shop.next
        const lostAt = performance.now()
        yield* Effect.forkScoped(lose(active.running))
        const went = yield* opened(next, waiting.running, key)
        const seconds = (performance.now() - lostAt) / 1000
        expect(seconds).toBeLessThan(longest)
        yield* chain.mine(confirmations)
        const [confirmed] = yield* inbox.take(hookPath, payment, "payment.confirmed")
        expect(confirmed?.event.data).toMatchObject({ status: "confirmed", txHash: hash })
        yield* Queue.takeAll(shop.bell)
        yield* shop.next
        yield* shop.stop
        const made = [...shop.made, payment]
        for (const each of made) expect(yield* went.payment(each)).toMatchObject({ id: each.id, address: each.address })
        expect(new Set(made.map(({ address }) => address)).size).toBe(made.length)
        expect(shop.refused.filter((status) => status !== 503)).toEqual([])

        // What was stopped finds that it is not wanted any more, and ends.
        if (how.includes("SIGSTOP")) yield* active.running.signal("SIGCONT")
        yield* active.running.ended
        active = waiting
        daemon = went
      }
    })
  }
})
