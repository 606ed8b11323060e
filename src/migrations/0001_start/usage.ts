/** Bytes on disk of a row of this size: as many as fit share a page of 4,096 bytes. */
const shared = (bytes: string) => `4096 / (4080 / ${bytes})`

/**
 * The same for rows that may be larger than a page: they overflow into whole pages of 4,092 bytes; the rest stays in the
 * table's page or, where it does not fit, 489 bytes do (https://www.sqlite.org/fileformat2.html, section 1.6).
 */
const onPages = (bytes: string) =>
  `(SELECT iif(p <= 4061, ${shared("min(p, 4061)")}, (p - kept + 4091) / 4092 * 4096 + ${shared("kept")})
    FROM (SELECT p, iif((p - 489) % 4092 + 489 <= 4061, (p - 489) % 4092 + 489, 489) AS kept
      FROM (SELECT ${bytes} AS p)))`

const octets = (row: string, ...columns: ReadonlyArray<string>) =>
  columns.map((column) => `coalesce(octet_length(${row}.${column}), 0)`).join(" + ")

// A row's size in the file with its indexes: measured constants, and the fields that a merchant or receiver can make long.
const sizes = {
  payments: (row: string) =>
    `${onPages(`302 + ${octets(row, "metadata", "webhook_url", "redirect_url", "merchant_ref", "account_id", "wallet")}`)}
      + 375 + 5 * ${octets(row, "account_id")} + ${octets(row, "merchant_ref", "wallet")}`,
  events: (row: string) =>
    `${onPages(`98 + ${octets(row, "body", "account_id")}`)} + 140 + ${octets(row, "account_id")}`,
  deliveries: (row: string) =>
    `${onPages(`165 + ${octets(row, "url", "target", "account_id")}`)} + 220 + ${octets(row, "account_id")}`,
  quotes: (row: string) => `70 + ${octets(row, "body", "account_id")} + 50`,
  endpoints: (row: string) =>
    `${onPages(`60 + ${octets(row, "url", "events", "secret", "previous_secret", "account_id")}`)} + 60`,
  idempotent_responses: (row: string) =>
    `${onPages(`80 + ${octets(row, "body", "headers", "key", "account_id")}`)} + 50 + ${octets(row, "key", "account_id")}`
}

/** An account's own act in the audit log, with its index. */
const auditSize = `70 + ${octets("NEW", "who", "account_id", "act", "detail")}`

const counters = ["bytes", "open_payments", "open_bytes", "endpoints", "endpoint_bytes", "unfinished"] as const
type Change = Partial<Record<(typeof counters)[number], string>>

/** Adds to an owner's usage; `from` says where the row comes from. */
const adding = (owner: string, change: Change, from = "WHERE true") =>
  `INSERT INTO usage (account_id, mode, ${counters.join(", ")})
   SELECT ${owner}, ${counters.map((counter) => change[counter] ?? "0").join(", ")} ${from}
   ON CONFLICT (account_id, mode) DO UPDATE SET
     ${counters.map((counter) => `${counter} = ${counter} + excluded.${counter}`).join(", ")};`

const trigger = (name: string, when: string, body: string) =>
  `CREATE TRIGGER usage_${name} AFTER ${when} BEGIN ${body} END`

const ownerOf = (row: string) => `${row}.account_id, ${row}.mode`
const less = (size: string) => `-(${size})`

const rowTriggers = Object.entries(sizes).flatMap(([table, size]) => [
  trigger(`${table}_added`, `INSERT ON ${table}`, adding(ownerOf("NEW"), { bytes: size("NEW") })),
  trigger(`${table}_gone`, `DELETE ON ${table}`, adding(ownerOf("OLD"), { bytes: less(size("OLD")) }))
])

/** What each further event of an open payment will store, with its delivery to the payment's own URL, without attempts. */
const payload = (row: string) =>
  `1380 + 11 * (${octets(row, "metadata", "redirect_url", "merchant_ref", "webhook_url")}) / 10 + 2 * ${octets(row, "webhook_url")}`

const attemptSize = (row: string) => shared(`(30 + ${octets(row, "address", "error", "body_start")})`)
const ofDelivery = (row: string) => `FROM deliveries WHERE sequence = ${row}.delivery`

/**
 * The disk usage of each account, kept by triggers on the statements that change it, so that nothing is ever counted. It
 * includes what open payments and unfinished deliveries may still have to store, since these always continue. Sums may be
 * wrong by a few percent and must never make a statement fail: they have no CHECK.
 */
export const usage = [
  `CREATE TABLE usage (
    account_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    open_payments INTEGER NOT NULL,
    open_bytes INTEGER NOT NULL,
    endpoints INTEGER NOT NULL,
    endpoint_bytes INTEGER NOT NULL,
    unfinished INTEGER NOT NULL,
    PRIMARY KEY (account_id, mode)
  ) STRICT, WITHOUT ROWID`,
  ...rowTriggers,
  trigger(
    "idempotent_responses_replaced",
    "UPDATE OF body, headers ON idempotent_responses",
    adding(ownerOf("NEW"), {
      bytes: `${sizes.idempotent_responses("NEW")} - (${sizes.idempotent_responses("OLD")})`
    })
  ),
  trigger(
    "endpoints_changed",
    "UPDATE OF url, events, secret, previous_secret ON endpoints",
    adding(ownerOf("NEW"), {
      bytes: `${sizes.endpoints("NEW")} - (${sizes.endpoints("OLD")})`,
      endpoint_bytes: `iif(NEW.deleted_at IS NULL, (${octets("NEW", "url")}) - (${octets("OLD", "url")}), 0)`
    })
  ),
  trigger(
    "deliveries_moved",
    "UPDATE OF url, target ON deliveries",
    adding(ownerOf("NEW"), { bytes: `${sizes.deliveries("NEW")} - (${sizes.deliveries("OLD")})` })
  ),
  trigger("audit_added", "INSERT ON audit WHEN NEW.mode IS NOT NULL", adding(ownerOf("NEW"), { bytes: auditSize })),
  trigger(
    "attempts_added",
    "INSERT ON attempts",
    adding("account_id, mode", { bytes: attemptSize("NEW") }, ofDelivery("NEW"))
  ),
  trigger(
    "attempts_gone",
    "DELETE ON attempts",
    adding("account_id, mode", { bytes: less(attemptSize("OLD")) }, ofDelivery("OLD"))
  ),
  trigger(
    "payments_opened",
    "INSERT ON payments WHEN NEW.ended_at IS NULL",
    adding(ownerOf("NEW"), { open_payments: "1", open_bytes: payload("NEW") })
  ),
  trigger(
    "payments_ended",
    "UPDATE OF ended_at ON payments WHEN OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL",
    adding(ownerOf("NEW"), { open_payments: "-1", open_bytes: less(payload("NEW")) })
  ),
  trigger(
    "endpoints_opened",
    "INSERT ON endpoints WHEN NEW.deleted_at IS NULL",
    adding(ownerOf("NEW"), { endpoints: "1", endpoint_bytes: octets("NEW", "url") })
  ),
  trigger(
    "endpoints_deleted",
    "UPDATE OF deleted_at ON endpoints WHEN OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL",
    adding(ownerOf("NEW"), { endpoints: "-1", endpoint_bytes: less(octets("NEW", "url")) })
  ),
  trigger(
    "deliveries_begun",
    "INSERT ON deliveries WHEN NEW.done_at IS NULL",
    adding(ownerOf("NEW"), { unfinished: "1" })
  ),
  trigger(
    "deliveries_done",
    "UPDATE OF done_at ON deliveries WHEN OLD.done_at IS NULL AND NEW.done_at IS NOT NULL",
    adding(ownerOf("NEW"), { unfinished: "-1" })
  ),
  trigger(
    "deliveries_resumed",
    "UPDATE OF done_at ON deliveries WHEN OLD.done_at IS NOT NULL AND NEW.done_at IS NULL",
    adding(ownerOf("NEW"), { unfinished: "1" })
  )
]
