/** Bytes on disk of a row of this size: as many as fit share a page of 4,096 bytes. */
const shared = (bytes: string) => `4096 / (4080 / (${bytes}))`

/**
 * The same for rows that may be larger than a page: they overflow into whole pages of 4,092 bytes; the rest stays in the
 * table's page or, where it does not fit, 489 bytes do (https://www.sqlite.org/fileformat2.html, section 1.6).
 */
const onPages = (bytes: string) =>
  `iif(${bytes} <= 4061, ${shared(bytes)}, (SELECT (p - kept + 4091) / 4092 * 4096 + ${shared("kept")}
    FROM (SELECT p, iif((p - 489) % 4092 + 489 <= 4061, (p - 489) % 4092 + 489, 489) AS kept
      FROM (SELECT ${bytes} AS p))))`

/**
 * The same for a row of up to two pages in a B-tree without rowids, be it a table or an index: of more than 1,002 bytes 489
 * stay there, and the rest takes a page.
 */
const inKeyOrder = (bytes: string) => `iif(${bytes} <= 1002, ${bytes}, 489 + 4096)`

const octets = (row: string, ...columns: ReadonlyArray<string>) =>
  columns.map((column) => `coalesce(octet_length(${row}.${column}), 0)`).join(" + ")

// A row's size in the file with its indexes: measured constants, and the fields that a merchant or receiver can make long.
const sizes = {
  payments: (row: string) =>
    `${onPages(`302 + ${octets(row, "metadata", "webhook_url", "redirect_url", "merchant_ref", "account_id", "wallet")}`)}
      + 300 + 3 * ${octets(row, "account_id")} + ${octets(row, "merchant_ref", "wallet")}`,
  invoices: (row: string) =>
    `${onPages(`260 + ${octets(row, "metadata", "webhook_url", "redirect_url", "merchant_ref", "account_id", "choices")}`)}
      + 260 + 3 * ${octets(row, "account_id")} + ${octets(row, "merchant_ref")}`,
  plugin_invoices: (row: string) =>
    `${onPages(`300 + ${octets(row, "asked", "told", "order_id", "account_id")}`)} + 300 + 2 * ${octets(row, "account_id", "order_id")}`,
  pull_payments: (row: string) => inKeyOrder(`250 + ${octets(row, "name", "description", "account_id")}`),
  metadata_terms: (row: string) => `70 + ${octets(row, "account_id", "key", "value")}`,
  events: (row: string) =>
    `${onPages(`98 + ${octets(row, "body", "account_id")}`)} + 126 + ${octets(row, "account_id")}`,
  deliveries: (row: string) =>
    `${onPages(`165 + ${octets(row, "url", "target", "account_id")}`)} + 220 + ${octets(row, "account_id")}`,
  quotes: (row: string) => `70 + ${octets(row, "body", "account_id")} + 50`,
  endpoints: (row: string) =>
    `${onPages(`60 + ${octets(row, "url", "events", "plugin", "secret", "previous_secret", "account_id")}`)} + 60`,
  idempotent_responses: (row: string) =>
    `${onPages(`80 + ${octets(row, "body", "headers", "key", "account_id")}`)} + 50 + ${octets(row, "key", "account_id")}`,
  api_keys: (row: string) =>
    `290 + ${octets(row, "name", "permissions", "plugin_permissions", "ips")} + 2 * ${octets(row, "account_id")}`,
  people: (row: string) => `125 + ${octets(row, "name")} + 2 * ${octets(row, "account_id")}`,
  passkeys: (row: string) =>
    `${inKeyOrder(`110 + ${octets(row, "id", "name", "public_key")}`)} + ${inKeyOrder(`60 + ${octets(row, "id")}`)}`,
  audit: (row: string) => `70 + ${octets(row, "who", "account_id", "act", "detail")}`
}

/** What an account's rows without a mode count as: its people, their passkeys, and the acts on them. */
const noMode = "''"

/** Whose a row is. Rows of the operator have no account, and change no row of `usage`. */
const owners: Readonly<Record<string, (row: string) => string>> = {
  people: (row) => `account_id = ${row}.account_id AND mode = ${noMode}`,
  passkeys: (row) => `account_id = (SELECT account_id FROM people WHERE id = ${row}.person_id) AND mode = ${noMode}`,
  audit: (row) => `account_id = ${row}.account_id AND mode = coalesce(${row}.mode, ${noMode})`
}

const ownerOf = (table: string, row: string) =>
  owners[table]?.(row) ?? `account_id = ${row}.account_id AND mode = ${row}.mode`

type Change = Partial<Record<"bytes" | "open_payments" | "open_bytes" | "endpoints" | "endpoint_bytes", string>>

const adding = (change: Change, owner: string) =>
  `UPDATE usage SET ${Object.entries(change)
    .map(([counter, added]) => `${counter} = ${counter} + ${added}`)
    .join(", ")} WHERE ${owner};`

const trigger = (name: string, when: string, body: string) =>
  `CREATE TRIGGER usage_${name} AFTER ${when} BEGIN ${body} END`

const less = (size: string) => `-(${size})`
const difference = (size: (row: string) => string) => `${size("NEW")} - (${size("OLD")})`

/** What each further event of an open payment will store, with its delivery to the payment's own URL. */
const payload = (row: string) =>
  `1380 + 11 * (${octets(row, "metadata", "redirect_url", "merchant_ref", "webhook_url")}) / 10
    + iif(${row}.webhook_url IS NULL, 0, 1000 + 2 * ${octets(row, "webhook_url")})`

/** What an insertion adds beside the row's bytes. */
const further: Readonly<Record<string, Change>> = {
  payments: { open_payments: "(NEW.ended_at IS NULL)", open_bytes: `iif(NEW.ended_at IS NULL, ${payload("NEW")}, 0)` },
  endpoints: { endpoints: "1", endpoint_bytes: octets("NEW", "url") }
}

const rowTriggers = Object.entries(sizes).flatMap(([table, size]) => [
  trigger(
    `${table}_added`,
    `INSERT ON ${table}`,
    adding({ bytes: size("NEW"), ...further[table] }, ownerOf(table, "NEW"))
  ),
  trigger(`${table}_gone`, `DELETE ON ${table}`, adding({ bytes: less(size("OLD")) }, ownerOf(table, "OLD")))
])

const attemptSize = (row: string) => shared(`30 + ${octets(row, "address", "error", "body_start")}`)
const ofDelivery = (row: string) =>
  `(account_id, mode) = (SELECT account_id, mode FROM deliveries WHERE sequence = ${row}.delivery)`

/**
 * What each account has stored, kept by triggers on the statements that change it, so that nothing is ever counted. Beside
 * it, how much its open payments will yet store at most: `Auth/UsageRepo.ts` says what for. Sums may be wrong by a few
 * percent and must never make a statement fail: they have no CHECK.
 */
export const usage = [
  `CREATE TABLE usage (
    account_id TEXT NOT NULL,
    mode TEXT NOT NULL CHECK (mode IN ('live', 'test', ${noMode})),
    bytes INTEGER NOT NULL DEFAULT 0,
    open_payments INTEGER NOT NULL DEFAULT 0,
    open_bytes INTEGER NOT NULL DEFAULT 0,
    endpoints INTEGER NOT NULL DEFAULT 0,
    endpoint_bytes INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, mode)
  ) STRICT, WITHOUT ROWID`,
  // Each account has its rows from the start: to change one takes half of what finding out whether there is one does.
  trigger(
    "accounts_added",
    "INSERT ON accounts",
    `INSERT INTO usage (account_id, mode) VALUES (NEW.id, 'live'), (NEW.id, 'test'), (NEW.id, ${noMode});`
  ),
  ...rowTriggers,
  trigger(
    "idempotent_responses_replaced",
    "UPDATE OF body, headers ON idempotent_responses",
    adding({ bytes: difference(sizes.idempotent_responses) }, ownerOf("idempotent_responses", "NEW"))
  ),
  trigger(
    "endpoints_changed",
    "UPDATE OF url, events, plugin, secret, previous_secret ON endpoints",
    adding(
      {
        bytes: difference(sizes.endpoints),
        endpoint_bytes: `iif(NEW.deleted_at IS NULL, (${octets("NEW", "url")}) - (${octets("OLD", "url")}), 0)`
      },
      ownerOf("endpoints", "NEW")
    )
  ),
  trigger(
    "plugin_invoices_changed",
    "UPDATE OF asked, told, order_id ON plugin_invoices",
    adding({ bytes: difference(sizes.plugin_invoices) }, ownerOf("plugin_invoices", "NEW"))
  ),
  trigger(
    "deliveries_moved",
    "UPDATE OF url, target ON deliveries",
    adding({ bytes: difference(sizes.deliveries) }, ownerOf("deliveries", "NEW"))
  ),
  trigger(
    "api_keys_changed",
    "UPDATE OF ips ON api_keys",
    adding({ bytes: difference(sizes.api_keys) }, ownerOf("api_keys", "NEW"))
  ),
  trigger("attempts_added", "INSERT ON attempts", adding({ bytes: attemptSize("NEW") }, ofDelivery("NEW"))),
  trigger("attempts_gone", "DELETE ON attempts", adding({ bytes: less(attemptSize("OLD")) }, ofDelivery("OLD"))),
  trigger(
    "payments_changed",
    "UPDATE OF metadata ON payments",
    adding(
      {
        bytes: difference(sizes.payments),
        open_bytes: `iif(NEW.ended_at IS NULL, ${difference(payload)}, 0)`
      },
      ownerOf("payments", "NEW")
    )
  ),
  trigger(
    "payments_ended",
    "UPDATE OF ended_at ON payments WHEN OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL",
    adding({ open_payments: "-1", open_bytes: less(payload("NEW")) }, ownerOf("payments", "NEW"))
  ),
  trigger(
    "endpoints_deleted",
    "UPDATE OF deleted_at ON endpoints WHEN OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL",
    adding({ endpoints: "-1", endpoint_bytes: less(octets("NEW", "url")) }, ownerOf("endpoints", "NEW"))
  )
]
