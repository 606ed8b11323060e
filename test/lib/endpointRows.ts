import Database from "better-sqlite3"

/** A delivery's status, the attempts that it has had, and when its event happened, Unix seconds. */
type Fared = readonly [status: "delivered" | "pending" | "failed", attempts: number, at: number]

/** Inserts endpoints with deliveries, deleted ones too, and exceptions. */
export const seed = (
  path: string,
  endpoints: ReadonlyArray<readonly [id: string, mode: string, fared: ReadonlyArray<Fared>]>
) => {
  const db = new Database(path)
  db.pragma("foreign_keys = OFF")
  const endpoint = db.prepare(
    "INSERT INTO endpoints (id, account_id, mode, url, events, secret, created_at, deleted_at) VALUES (?, 'default', ?, 'https://shop.example', '[]', randomblob(1), 0, ?)"
  )
  const delivery = db.prepare(
    `INSERT INTO deliveries (id, event_id, payment_id, account_id, mode, own_url, endpoint_id, target, url, status,
       attempts, next_attempt_at, created_at, done_at)
     VALUES ('dlv_', 'evt_', 'pay_', 'default', ?, 0, ?, ?, 'https://shop.example', ?, ?, ?, ?, ?)`
  )
  const exception = db.prepare(
    `INSERT INTO exceptions (id, address, key, kind, chain, mode, currency, amount, opened_at, closed_at, outcome)
     VALUES (?, '0x', ?, ?, 'base', ?, 'USDC', '1', 0, ?, ?)`
  )
  db.transaction(() => {
    db.prepare("DELETE FROM exceptions").run()
    for (const [id, mode] of endpoints) endpoint.run(id, mode, id.includes("deleted") ? 1 : null)
    // In the order in which they happened.
    const all = endpoints
      .flatMap(([id, mode, fared]) => fared.map((one) => ({ id, mode, one })))
      .sort((a, b) => a.one[2] - b.one[2])
    for (const { id, mode, one } of all) {
      const [status, attempts, at] = one
      const isDone = status === "delivered"
      delivery.run(mode, id, id, status, attempts, isDone ? null : 4e12, at * 1000, isDone ? at * 1000 + 500 : null)
    }
    for (const [i, [kind, mode, closed]] of (
      [
        ["late", "live", null],
        ["late", "live", null],
        ["late", "live", 1],
        ["late", "test", null],
        ["reorged", "live", null]
      ] as const
    ).entries()) {
      exception.run(`exc_${i}`, `${i}`, kind, mode, closed, closed === null ? null : "accepted")
    }
  })()
  db.close()
}
