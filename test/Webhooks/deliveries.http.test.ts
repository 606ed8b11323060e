import { expect } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { Tx, Writer } from "../../src/Sql.ts"
import { problemsIn, TestApi, testApp } from "../lib/api.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { testChain, testWebhooks } from "../lib/settings.ts"

const usdc = { symbol: "USDC", address: "0x036cbd53842c5426634e7929541ec2318f3dcf7e", decimals: 6 } as const

// 192.0.2.0/24 is for documentation: no one is called, and no dispatcher runs.
const app = testApp({
  chains: [testChain({ chain: "base", tokens: [usdc] })],
  webhooks: testWebhooks({ allowTargets: ["192.0.2.0/24"] })
})

let shops = 0

liveSuite(app, "deliveries over HTTP", (test, it) => {
  /** An account's shop with an endpoint, and as many payments as asked for: each has one delivery. */
  const shop = (payments: number) =>
    Effect.gen(function* () {
      const api = yield* TestApi
      const name = `shop-${++shops}`
      const account = yield* api.newAccount(name)
      const key = yield* api.newKey("test", undefined, account)
      const register = (path: string) =>
        Effect.map(
          api.call("POST", "/v1/webhooks", {
            key,
            json: {
              url: `https://192.0.2.1/${path}`,
              events: ["payment.created"],
              secret: "whsec_0123456789abcdef"
            }
          }),
          ({ body }): string => body.id
        )
      const endpoint = yield* register("a")
      const ids: Array<string> = []
      for (let i = 0; i < payments; i++) {
        const json = { merchantRef: `${name}/${i}`, amount: "1", currency: "USDC", chain: "base" }
        ids.push((yield* api.call("POST", "/v1/payments", { key, json })).body.id)
      }
      const list = (query = "") => api.call("GET", `/v1/deliveries${query}`, { key })
      return { account, api, endpoint, ids, key, list, name, register }
    })

  const onStore = (sql: string, ...params: ReadonlyArray<string | number>) =>
    Effect.flatMap(Writer, (writer) => writer.write(Effect.flatMap(Tx, (tx) => tx.run(sql, params))))

  /** The payment's delivery has failed once, with an attempt at an inside address. */
  const failOnce = (payment: string) =>
    Effect.gen(function* () {
      yield* onStore("UPDATE deliveries SET attempts = 1, next_attempt_at = 9e12 WHERE payment_id = ?", payment)
      yield* onStore(
        `INSERT INTO attempts (delivery, number, started_at, ended_at, address, status, body_start)
         SELECT sequence, 1, 1000, 1031, '10.0.0.7', 500, 'no' FROM deliveries WHERE payment_id = ?`,
        payment
      )
    })

  test("a delivery shows its payment, its receiver and its attempts, without internal addresses", function* () {
    const { api, endpoint, ids, key, list, name } = yield* shop(1)
    const [payment = ""] = ids
    const pending = (yield* list()).body.data[0]
    expect(pending).toEqual({
      id: expect.stringMatching(/^dlv_[A-Za-z0-9_-]+$/),
      event: expect.stringMatching(/^evt_/),
      kind: "payment.created",
      payment,
      merchantRef: `${name}/0`,
      endpoint,
      url: "https://192.0.2.1/a",
      status: "pending",
      createdAt: expect.stringMatching(/Z$/),
      nextAttemptAt: expect.stringMatching(/Z$/),
      attemptsMade: 0
    })
    yield* failOnce(payment)
    const attempt = {
      number: 1,
      startedAt: "1970-01-01T00:00:01.000Z",
      durationMillis: 31,
      status: 500,
      bodyStart: "no"
    }
    const shown = yield* api.call("GET", `/v1/deliveries/${pending.id}`, { key })
    expect(shown.body).toMatchObject({ id: pending.id, attemptsMade: 1, lastAttempt: attempt, attempts: [attempt] })
    expect(shown.text).not.toContain("10.0.0.7")
  })

  test("the filters select by endpoint, payment, state and time, and pages follow their cursor", function* () {
    const { endpoint, ids, list, register } = yield* shop(5)
    const other = yield* register("b")
    yield* failOnce(ids[1] ?? "")
    yield* onStore(
      "UPDATE deliveries SET status = 'delivered', next_attempt_at = NULL, done_at = 1, attempts = 1, created_at = 5000 WHERE payment_id = ?",
      ids[2] ?? ""
    )
    const found = (query: string) =>
      Effect.map(list(query), ({ body }) => body.data.map(({ payment }: { payment: string }) => ids.indexOf(payment)))
    expect(yield* found("")).toEqual([4, 3, 1, 0, 2])
    expect(yield* found("?status=failing")).toEqual([1])
    expect(yield* found("?status=pending")).toEqual([4, 3, 1, 0])
    expect(yield* found("?status=delivered")).toEqual([2])
    expect(yield* found(`?endpoint=${endpoint}&status=failing`)).toEqual([1])
    expect(yield* found(`?endpoint=${other}`)).toEqual([])
    expect(yield* found(`?payment=${ids[3]}`)).toEqual([3])
    expect(yield* found("?createdBefore=1970-01-02")).toEqual([2])
    expect(
      yield* found("?createdAfter=1970-01-01T00:00:05.000000000Z&createdBefore=1970-01-01t01:00:05.001+0100")
    ).toEqual([2])
    expect(yield* found("?createdAfter=1970-01-01T00:00:05.001Z&status=delivered")).toEqual([])

    const first = yield* list("?limit=2&status=pending")
    const second = yield* list(`?limit=2&status=pending&cursor=${first.body.cursor}`)
    expect([first, second].flatMap(({ body }) => body.data.map((one: { payment: string }) => one.payment))).toEqual([
      ...[ids[4], ids[3], ids[1], ids[0]]
    ])
    expect(second.body.cursor).toBeNull()
    const foreign = yield* list(`?limit=2&cursor=${first.body.cursor}`)
    expect([foreign.status, foreign.body.error.code]).toEqual([400, "INVALID_CURSOR"])
  })

  it.effect.each([
    ["status=dead", "status", "must be pending, delivered, failed, cancelled or failing"],
    [
      "createdAfter=yesterday",
      "createdAfter",
      "must be a time such as 2026-01-31T12:00:00Z, or a day such as 2026-01-31"
    ],
    [
      "createdBefore=2026-02-30",
      "createdBefore",
      "must be a time such as 2026-01-31T12:00:00Z, or a day such as 2026-01-31"
    ],
    ["limit=101", "limit", "must be an integer from 1 to 100"],
    ["page=2", "page", "is not a query parameter of this endpoint"]
  ] as const)("refuses %s", ([query, path, rule]) =>
    Effect.gen(function* () {
      const { list } = yield* shop(0)
      const answer = yield* list(`?${query}`)
      expect([answer.status, problemsIn(answer)]).toEqual([400, { [path]: rule }])
    })
  )

  test("no one sees or sends what belongs to another account or the other mode", function* () {
    const mine = yield* shop(1)
    const theirs = yield* shop(1)
    const { id } = (yield* mine.list()).body.data[0]
    const asThem = (method: string, path: string, json?: unknown) =>
      mine.api.call(method, path, { key: theirs.key, ...(json === undefined ? {} : { json }) })
    expect((yield* asThem("GET", `/v1/deliveries/${id}`)).status).toBe(404)
    expect((yield* asThem("POST", `/v1/deliveries/${id}/redeliver`, {})).status).toBe(404)
    expect((yield* asThem("GET", `/v1/deliveries?endpoint=${mine.endpoint}`)).status).toBe(404)
    expect((yield* asThem("POST", "/v1/deliveries/redeliver", { endpoint: mine.endpoint })).status).toBe(404)
    expect((yield* asThem("GET", `/v1/deliveries?payment=${mine.ids[0]}`)).body.data).toEqual([])
    const [own] = (yield* theirs.list()).body.data
    const stolen = yield* asThem("POST", `/v1/deliveries/${own.id}/redeliver`, { to: mine.endpoint })
    expect([stolen.status, Object.keys(problemsIn(stolen))]).toEqual([400, ["to"]])
    const many = yield* asThem("POST", "/v1/deliveries/redeliver", { status: "pending", to: mine.endpoint })
    expect(many.status).toBe(400)
  })

  test("a delivery is sent again, and with `to` at another endpoint; a deleted one's needs that", function* () {
    const { api, endpoint, ids, key, list, register } = yield* shop(1)
    const [{ id }] = (yield* list()).body.data
    const again = (json: unknown, headers = {}) =>
      api.call("POST", `/v1/deliveries/${id}/redeliver`, { key, json, headers })
    expect((yield* again({})).body).toEqual({ id, result: "due" })
    yield* failOnce(ids[0] ?? "")
    const headers = { "idempotency-key": "again" }
    const ordered = yield* again({}, headers)
    expect([ordered.status, ordered.body]).toEqual([200, { id, result: "ordered" }])
    const repeated = yield* again({}, headers)
    expect([repeated.headers["idempotent-replayed"], repeated.body]).toEqual(["true", ordered.body])

    const deleted = yield* api.call("DELETE", `/v1/webhooks/${endpoint}`, { key })
    expect(deleted.body).toEqual({ id: endpoint, deleted: true, cancelled: 1 })
    // A refusal is not an answer to keep: the same request may be sent again.
    const gone = { "idempotency-key": "gone" }
    for (const refused of [yield* again({}, gone), yield* again({}, gone)]) {
      expect([refused.status, refused.body.error?.code]).toEqual([409, "ENDPOINT_DELETED"])
    }
    const to = yield* register("b")
    const elsewhere = yield* again({ to })
    expect(elsewhere.body).toMatchObject({ result: "ordered" })
    expect((yield* list(`?endpoint=${to}`)).body.data).toMatchObject([
      { id: elsewhere.body.id, payment: ids[0], status: "pending", url: "https://192.0.2.1/b" }
    ])
    expect((yield* api.call("POST", "/v1/deliveries/dlv_none/redeliver", { key, json: {} })).status).toBe(404)
  })

  test("nothing is sent to an endpoint that is deleted at the same moment", function* () {
    const { api, key, list, register } = yield* shop(1)
    const to = yield* register("b")
    const [{ id }] = (yield* list()).body.data
    const writer = yield* Writer
    const deleted = yield* Deferred.make<void>()
    const commit = yield* Deferred.make<void>()
    const deletion = Effect.gen(function* () {
      yield* (yield* Tx).run("UPDATE endpoints SET deleted_at = 1 WHERE id = ?", [to])
      yield* Deferred.succeed(deleted, undefined)
      yield* Deferred.await(commit)
    })
    const deleting = yield* Effect.fork(writer.write(deletion))
    yield* Deferred.await(deleted)
    const orders = yield* Effect.fork(
      Effect.all(
        [`/${id}/redeliver`, "/redeliver"].map((path) =>
          api.call("POST", `/v1/deliveries${path}`, { key, json: { to } })
        ),
        { concurrency: 2 }
      )
    )
    // Requests that only read are answered meanwhile.
    yield* Effect.repeatN(list(), 5)
    yield* Deferred.succeed(commit, undefined)
    yield* deleting
    const answers = yield* orders
    expect(answers.map(({ status }) => status)).toEqual([400, 400])
    expect((yield* list(`?endpoint=${to}`)).body.data).toEqual([])
  })

  test("an account that has used up its quota sends nothing again: each attempt is a row", function* () {
    const { account, api, key, list, register } = yield* shop(1)
    const to = yield* register("b")
    const [{ id }] = (yield* list()).body.data
    yield* onStore("UPDATE usage SET bytes = bytes + 1000000000 WHERE account_id = ?", account)
    const elsewhere = yield* api.call("POST", `/v1/deliveries/${id}/redeliver`, { key, json: { to } })
    expect([elsewhere.status, elsewhere.body.error.code]).toEqual([507, "QUOTA_EXCEEDED"])
    const many = yield* api.call("POST", "/v1/deliveries/redeliver", { key, json: { to, status: "pending" } })
    expect(many.status).toBe(507)
    expect((yield* list()).body.data).toHaveLength(1)
    expect((yield* api.call("POST", `/v1/deliveries/${id}/redeliver`, { key, json: {} })).status).toBe(507)
    yield* onStore("UPDATE usage SET bytes = bytes - 1000000000 WHERE account_id = ?", account)
    expect((yield* api.call("POST", `/v1/deliveries/${id}/redeliver`, { key, json: {} })).body.result).toBe("due")
  })

  test("many are sent again: what fails unless another state is named, each once", function* () {
    const { api, ids, key, register } = yield* shop(4)
    yield* failOnce(ids[0] ?? "")
    yield* failOnce(ids[2] ?? "")
    const send = (json: unknown) => api.call("POST", "/v1/deliveries/redeliver", { key, json })
    const none = { ordered: 0, due: 0, refused: 0, cursor: null }
    expect((yield* send({})).body).toEqual({ ...none, ordered: 2 })
    expect((yield* send({})).body).toEqual({ ...none, due: 2 })
    expect((yield* send({ payment: ids[1], status: "pending" })).body).toEqual({ ...none, due: 1 })
    const to = yield* register("b")
    expect((yield* send({ status: "pending", to })).body).toEqual({ ...none, ordered: 4 })
    expect((yield* send({ status: "pending", to, cursor: "x" })).body.error.code).toBe("INVALID_CURSOR")
    const reader = yield* api.newKey("test", ["webhooks:read"])
    expect((yield* api.call("POST", "/v1/deliveries/redeliver", { key: reader, json: {} })).status).toBe(403)
  })

  test("a range whose response cannot be stored for a repetition is not ordered", function* () {
    const { api, ids, key } = yield* shop(1)
    const [payment = ""] = ids
    const headers = { "idempotency-key": `range of ${payment}` }
    const send = api.call("POST", "/v1/deliveries/redeliver", { key, headers, json: { payment } })
    const owed = onStore("UPDATE deliveries SET attempts = 1, next_attempt_at = 9e15 WHERE payment_id = ?", payment)
    yield* owed
    yield* onStore("CREATE TRIGGER full BEFORE INSERT ON idempotent_responses BEGIN SELECT RAISE(ABORT, 'full'); END")
    expect((yield* send).status).toBe(500)
    yield* onStore("DROP TRIGGER full")
    expect((yield* send).body).toEqual({ ordered: 1, due: 0, refused: 0, cursor: null })
    yield* owed
    expect((yield* send).body).toEqual({ ordered: 1, due: 0, refused: 0, cursor: null })
  })

  test("a range ends where its first request began: what `to` adds is not of it, whatever becomes of that", function* () {
    const { api, ids, key, register } = yield* shop(1)
    const [payment = ""] = ids
    const arrive =
      "UPDATE deliveries SET status = 'delivered', next_attempt_at = NULL, after_sequence = NULL, redelivery = 0, done_at = 1"
    yield* onStore(`${arrive} WHERE payment_id = ?`, payment)
    yield* onStore(
      `INSERT INTO events (id, account_id, mode, payment_id, kind, body, created_at)
       WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
       SELECT printf('evt_%030d', i), account_id, mode, payment_id, kind, body, created_at FROM events, n
       WHERE payment_id = ?`,
      payment
    )
    yield* onStore(
      `INSERT INTO deliveries (id, event_id, payment_id, account_id, mode, endpoint_id, own_url, target, url, status,
         attempts, created_at, done_at)
       SELECT 'dlv_' || substr(e.id, 5) || '_x', e.id, d.payment_id, d.account_id, d.mode, d.endpoint_id, 0, d.target,
         d.url, d.status, 1, d.created_at, 1
       FROM deliveries AS d JOIN events AS e ON e.payment_id = d.payment_id AND e.id <> d.event_id
       WHERE d.payment_id = ?`,
      payment
    )
    const to = yield* register("b")
    const send = (cursor?: string) =>
      api.call("POST", "/v1/deliveries/redeliver", { key, json: { status: "delivered", to, cursor } })
    const first = yield* send()
    expect(first.body).toEqual({ ordered: 500, due: 0, refused: 0, cursor: expect.any(String) })
    yield* onStore(`${arrive} WHERE endpoint_id = ?`, to)
    expect((yield* send(first.body.cursor)).body).toEqual({ ordered: 1, due: 0, refused: 0, cursor: null })
  })
})
