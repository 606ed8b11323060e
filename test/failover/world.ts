/**
 * Two nodes on one PostgreSQL, each on a line of its own and started again whenever it ends, as systemd does; five chains; a
 * receiver of webhooks; and a shop that never stops and keeps what was acknowledged.
 */
import { copyFileSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect } from "@effect/vitest"
import { Context, Effect, Layer, Option, Scope } from "effect"
import { request } from "undici"
import { type ChainName, chainNames } from "../../src/Domain/Chain.ts"
import type { EventKind, WebhookEvent } from "../../src/Domain/Event.ts"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import { confirmations, FiveChains, type Home, makeHome, newKey, pay } from "../lib/daemon.ts"
import { makeInbox } from "../lib/inbox.ts"
import { freePort, httpAgent } from "../lib/loopback.ts"
import { login, urlOf } from "../lib/postgres.ts"
import { type DatabaseServer, databaseServer, standbyOf } from "../lib/postgresCluster.ts"
import { type Ended, type Running, startTilld } from "../lib/processes.ts"
import { temporaryFolder } from "../lib/store.ts"
import { type TcpLine, tcpLine } from "../lib/tcpLine.ts"

const hookPath = "/hook"
const database = "shop"

/** Longest that a client of the shop waits for an answer, and pause between two orders. */
const patience = "2 seconds"
const pause = "50 millis"
const customers = 2

/** Tries until it gives something. */
const seen = <A>(look: Effect.Effect<A | undefined>): Effect.Effect<A> =>
  Effect.repeat(Effect.delay(look, "10 millis"), { until: (found) => found !== undefined }).pipe(
    Effect.map((found) => found as A)
  )

/** A node, by its configuration; its process is another one after each end. */
export interface Unit {
  readonly home: Home
  readonly url: string
  readonly line: TcpLine
  readonly process: () => Running
  /** Has its next process run another copy of the program. */
  readonly install: (binary: string) => void
  /** How its processes have ended so far. */
  readonly ends: () => ReadonlyArray<Ended>
}

const storeKeys = (folder: string, name: string, line: TcpLine) => `[database]
engine = "postgres"
url = "${urlOf(line.port, database)}"
password_file = "${folder}/password"
mark_folder = "${folder}/../marks-of-${folder.split("/").at(-1)}"
[node]
name = "${name}"
folder = "${folder}"`

/** The home of a node with the keys and the wallet of another one. */
const homeOf = Effect.fnUntraced(function* (plain: Home, name: string, port: number, line: TcpLine) {
  const folder = yield* temporaryFolder
  const config = join(folder, "tilld.toml")
  const text = readFileSync(plain.config, "utf8")
    .replace(/\[database\]\npath = .*/, storeKeys(folder, name, line))
    .replace("port = 0", `port = ${port}`)
    .replace('level = "debug"', 'level = "info"')
  writeFileSync(config, text)
  copyFileSync(join(plain.folder, "master.key"), join(folder, "master.key"))
  writeFileSync(join(folder, "password"), login.password, { mode: 0o600 })
  return { ...plain, folder, config, database: join(folder, "tilld.db") } satisfies Home
})

const startUnit = Effect.fnUntraced(function* (plain: Home, name: string, line: TcpLine) {
  const port = yield* freePort
  const home = yield* homeOf(plain, name, port, line)
  const ends: Array<Ended> = []
  let options: { readonly binary?: string } = {}
  const start = Effect.suspend(() => startTilld(["serve", "--config", home.config], options))
  let process = yield* start
  const restart = Effect.gen(function* () {
    ends.push(yield* process.ended)
    // RestartSec of the unit.
    yield* Effect.sleep("2 seconds")
    process = yield* start
  })
  yield* Effect.forkScoped(Effect.forever(restart))
  return {
    home,
    line,
    url: `http://127.0.0.1:${port}`,
    process: () => process,
    ends: () => ends,
    install: (binary: string): void => {
      options = { binary }
    }
  } satisfies Unit
})

interface Answer {
  readonly status: number
  readonly body: string
}

/** A request that was made: when, in milliseconds, and its status; undefined for none in time. */
interface Attempt {
  readonly from: number
  readonly to: number
  readonly url: string
  readonly status: number | undefined
}

/** What is ordered, on a chain; the same `merchantRef` is the same order. */
const orderOf = (merchantRef: string, chain: ChainName, hook: string) => ({
  ...{ merchantRef, chain, currency: "USDC", amount: "25000000", webhookUrl: hook }
})

const makeWorld = Effect.gen(function* () {
  const worldScope = yield* Effect.scope
  const chains = yield* FiveChains
  const inbox = yield* makeInbox()
  let server: DatabaseServer = yield* databaseServer
  yield* server.ask("postgres", `CREATE DATABASE ${database}`)
  const plain = yield* makeHome({ chains, caFile: inbox.caFile })
  const agent = yield* httpAgent
  const one = yield* startUnit(plain, "one", yield* tcpLine(server.port))
  const ask = ({ url }: Pick<Unit, "url">, method: "GET" | "POST", path: string, key = "", body?: object, once = "") =>
    Effect.tryPromise(async (signal): Promise<Answer> => {
      const headers = { "x-api-key": key, "content-type": "application/json", "idempotency-key": once }
      const text = body === undefined ? {} : { body: JSON.stringify(body) }
      const answer = await request(`${url}${path}`, { dispatcher: agent, signal, method, headers, ...text })
      return { status: answer.statusCode, body: await answer.body.text() }
    }).pipe(Effect.timeout(patience), Effect.option)
  const readiness = (unit: Unit) => Effect.map(ask(unit, "GET", "/readyz"), Option.getOrUndefined)
  const isReady = (unit: Unit) => Effect.map(readiness(unit), (answer) => (answer?.status === 200 ? unit : undefined))
  yield* seen(isReady(one))
  const two = yield* startUnit(plain, "two", yield* tcpLine(server.port))
  const units = [one, two]
  const key = yield* Effect.orDie(newKey(one.home))

  const attempts: Array<Attempt> = []
  const acknowledged = new Map<string, PaymentObject>()
  /** Orders at one node, and then at the other, until it is acknowledged. */
  const order = Effect.fnUntraced(function* (ref: string, chain: ChainName) {
    for (let tried = attempts.at(-1)?.url === two.url ? 1 : 0; ; tried++) {
      const { url } = units[tried % 2] ?? one
      const from = performance.now()
      const answer = yield* ask({ url }, "POST", "/v1/payments", key, orderOf(ref, chain, inbox.url + hookPath), ref)
      const status = Option.getOrUndefined(answer)?.status
      attempts.push({ from, to: performance.now(), url, status })
      if (answer._tag === "Some" && status === 201) {
        const payment = JSON.parse(answer.value.body) as PaymentObject
        acknowledged.set(payment.id, payment)
        return payment
      }
      yield* Effect.sleep(pause)
    }
  })
  const customer = (name: number) =>
    Effect.gen(function* () {
      for (let n = 0; ; n++) {
        yield* order(`customer ${name} order ${n}`, chainNames[n % chainNames.length] ?? "base")
        yield* Effect.sleep(pause)
      }
    })
  yield* Effect.forEach(Array.from({ length: customers }), (_, name) => Effect.forkScoped(customer(name)))

  /** Waits until one node works and the other one is a standby that knows. */
  const settled = seen(
    Effect.gen(function* () {
      const [first, second] = yield* Effect.all(units.map(readiness))
      if (first?.status === 200 && second?.body.includes("active is one")) return { active: one, other: two }
      if (second?.status === 200 && first?.body.includes("active is two")) return { active: two, other: one }
      return undefined
    })
  )
  /** Waits for a payment that was asked for after this moment and made, by this node if one is given. */
  const served = (after: number, by?: Unit) =>
    seen(
      Effect.sync(() =>
        attempts.find(({ from, status, url }) => from >= after && status === 201 && (by?.url ?? url) === url)
      )
    )
  /** The longest time from a request that failed to the next success, in seconds, of what is after this moment. */
  const longestFailure = (after: number) => {
    let since: number | undefined
    let longest = 0
    for (const { from, status, to } of attempts.filter((each) => each.to >= after).sort((a, b) => a.to - b.to)) {
      if (status === 201) {
        if (since !== undefined) longest = Math.max(longest, to - since)
        since = undefined
      } else since ??= Math.max(from, after)
    }
    return longest / 1000
  }
  const webhooks: Array<{ readonly body: string; readonly event: WebhookEvent }> = []
  /** All webhooks so far, repeated ones too. */
  const received = Effect.map(inbox.all, (requests) => {
    for (const request of requests.slice(webhooks.length)) {
      const body = request.body.toString()
      webhooks.push({ body, event: JSON.parse(body) as WebhookEvent })
    }
    return webhooks
  })
  /** Waits for a webhook of a payment. */
  const told = (payment: PaymentObject, kind: EventKind) =>
    seen(Effect.map(received, (all) => all.find(({ event }) => event.event === kind && event.data.id === payment.id)))
  const rows = <Row extends object>(sql: string) => server.ask<Row>(database, sql)

  let orders = 0
  const create = (chain: ChainName) => order(`round order ${orders++}`, chain)
  const paid = new Map<string, PaymentObject>()
  const lost = new Set<string>()
  /** Payments whose events were sent and then lost: each is sent again, as of then. */
  const retold = new Set<string>()
  const contentOf = (body: string, { event, data }: WebhookEvent) =>
    retold.has(data.id)
      ? `${event} ${JSON.stringify({ ...data, confirmedAt: "" }).replace(/"confirmations":\d+/g, "")}`
      : body
  const payAndMine = Effect.fnUntraced(function* (payment: PaymentObject, blocks = 1) {
    const chain = yield* Effect.orDie(Effect.fromNullable(chains.get(payment.chain as ChainName)))
    paid.set(payment.id, payment)
    yield* Effect.orDie(pay(chain, payment))
    yield* Effect.orDie(chain.mine(blocks))
  })
  const mineAll = Effect.orDie(
    Effect.forEach([...chains.values()], (chain) => chain.mine(confirmations), { concurrency: "unbounded" })
  )

  /** A payment as the node that works shows it. */
  const payment = (id: string) =>
    seen(
      Effect.map(Effect.all(units.map((unit) => ask(unit, "GET", `/v1/payments/${id}`, key))), (answers) => {
        const found = answers.flatMap(Option.toArray).find(({ status }) => status === 200)
        return found && (JSON.parse(found.body) as PaymentObject)
      })
    )
  const read = new Set<string>()

  /** What must be true of all that was ever acknowledged, but for what was lost. */
  const check = Effect.gen(function* () {
    yield* settled
    yield* mineAll
    const present = [...paid.values()].filter(({ id }) => !lost.has(id))
    yield* Effect.forEach(present, (payment) => told(payment, "payment.confirmed"), { concurrency: "unbounded" })
    const all = [...acknowledged.values()]
    expect(new Set(all.map(({ address }) => address)).size).toBe(all.length)
    const kept = all.filter(({ id }) => !lost.has(id))
    const stored = yield* rows<{ id: string; address: string }>("SELECT id, address FROM tilld.payments")
    const addresses = new Map(stored.map(({ address, id }) => [id, address]))
    expect(kept.filter(({ address, id }) => addresses.get(id) !== address)).toEqual([])
    // Each once as a shop sees it, too.
    const shown = yield* Effect.forEach(
      kept.filter(({ id }) => !read.has(id)),
      ({ id }) => payment(id),
      { concurrency: 8 }
    )
    for (const { address, amount, amountReceived, id, status } of shown) {
      read.add(id)
      expect(address).toBe(acknowledged.get(id)?.address)
      if (paid.has(id)) expect({ status, amountReceived }).toEqual({ status: "confirmed", amountReceived: amount })
    }
    const receipts = yield* rows<{ payment_id: string; sum: string; count: string }>(
      `SELECT payment_id, sum(amount::numeric)::text, count(*)::text FROM tilld.receipts
       WHERE canonical = 1 AND payment_id IS NOT NULL GROUP BY 1`
    )
    expect(receipts.map(({ count, payment_id, sum }) => [payment_id, sum, count]).sort()).toEqual(
      present.map(({ amount, id }) => [id, amount, "1"]).sort()
    )
    const contents = new Map<string, Set<string>>()
    const confirmed = new Map<string, Set<string>>()
    const into = (map: Map<string, Set<string>>, of: string, value: string) =>
      map.set(of, (map.get(of) ?? new Set()).add(value))
    for (const { body, event } of yield* received) {
      into(contents, event.id, contentOf(body, event))
      if (event.event === "payment.confirmed") into(confirmed, event.data.id, event.id)
    }
    expect([...contents.values()].filter(({ size }) => size !== 1).map((bodies) => [...bodies])).toEqual([])
    expect([...confirmed.values()].filter(({ size }) => size !== 1)).toEqual([])
    expect(attempts.filter(({ status }) => ![undefined, 201, 409, 503].includes(status))).toEqual([])
  })

  /** Waits for money at an address that no payment has. */
  const exceptionAt = (address: string) =>
    seen(
      Effect.gen(function* () {
        yield* mineAll
        const sql = `SELECT kind, chain, amount FROM tilld.exceptions WHERE address = '${address.toLowerCase()}'`
        return (yield* rows<{ kind: string; chain: string; amount: string }>(sql))[0]
      })
    )

  return {
    ...{
      exceptionAt,
      settled,
      served,
      longestFailure,
      told,
      create,
      payAndMine,
      mineAll,
      check,
      lost,
      retold,
      acknowledged
    },
    units,
    /** Waits for the end of a node's process, after as many others. */
    ended: ({ ends }: Unit, before: number) => seen(Effect.sync(() => ends()[before])),
    /** Waits until a node that does not work says this of itself. */
    says: (unit: Unit, text: string) =>
      seen(
        Effect.map(readiness(unit), (answer) =>
          answer?.status === 503 && answer.body.includes(text) ? answer.body : undefined
        )
      ),
    server: () => server,
    /** Puts a standby in the place of the server that is no more. */
    turnTo: (next: DatabaseServer) =>
      Effect.sync(() => {
        server = next
        for (const { line } of units) line.turnTo(next.port)
      }),
    standby: (through: number) => Scope.extend(standbyOf(server, through), worldScope)
  }
})
export class World extends Context.Tag("test/World")<World, Effect.Effect.Success<typeof makeWorld>>() {
  static readonly layer = Layer.scoped(World, makeWorld).pipe(Layer.provide(FiveChains.layer))
}
