import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

// Whoever writes a delivery, its lane hears of it.
const laneTrigger = (name: string, change: string) =>
  `CREATE TRIGGER deliveries_${name} AFTER ${change} ON deliveries WHEN NEW.next_attempt_at IS NOT NULL
  BEGIN
    INSERT INTO lanes (target, next_at) VALUES (NEW.target, NEW.next_attempt_at)
    ON CONFLICT (target) DO UPDATE SET next_at = excluded.next_at WHERE excluded.next_at < lanes.next_at;
  END`

// Amounts are TEXT of decimal digits (a SQLite integer ends at 2^63). Times are INTEGER: Unix milliseconds, block times
// Unix seconds. Addresses in `receipts` are lower case, in `payments` EIP-55.
const statements = [
  `CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
  ) STRICT, WITHOUT ROWID`,

  `CREATE TABLE accounts (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`,

  `CREATE TABLE api_keys (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    mode TEXT NOT NULL CHECK (mode IN ('live', 'test')),
    name TEXT NOT NULL,
    hash BLOB NOT NULL UNIQUE,
    last_four TEXT NOT NULL,
    permissions TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    last_used_at INTEGER
  ) STRICT, WITHOUT ROWID`,

  // Requests of keys that were active within the hour.
  `CREATE TABLE rate_windows (
    key_id TEXT PRIMARY KEY REFERENCES api_keys (id),
    minute_start INTEGER NOT NULL,
    minute_count INTEGER NOT NULL,
    hour_start INTEGER NOT NULL,
    hour_count INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`,

  // Answers that are given again to a request with the same Idempotency-Key. The hash of its body is made with a key of
  // the master key's, since the body may hold a secret; it is gone when that key has changed.
  `CREATE TABLE idempotent_responses (
    account_id TEXT NOT NULL REFERENCES accounts (id),
    mode TEXT NOT NULL CHECK (mode IN ('live', 'test')),
    route TEXT NOT NULL,
    key TEXT NOT NULL,
    body_hash BLOB,
    status INTEGER NOT NULL,
    headers TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (account_id, mode, route, key)
  ) STRICT`,
  "CREATE INDEX idempotent_responses_age ON idempotent_responses (created_at)",

  // The counter belongs to the wallet (public key and chain code, hashed), never to an account or a mode: two accounts
  // on one extended public key must never be given the same address.
  `CREATE TABLE wallets (
    fingerprint TEXT PRIMARY KEY,
    next_index INTEGER NOT NULL CHECK (next_index >= 0)
  ) STRICT, WITHOUT ROWID`,

  // An account's own wallets, sealed extended public keys. An account without any row here uses the configuration's.
  `CREATE TABLE account_wallets (
    account_id TEXT NOT NULL REFERENCES accounts (id),
    mode TEXT NOT NULL CHECK (mode IN ('live', 'test')),
    fingerprint TEXT NOT NULL,
    xpub BLOB NOT NULL,
    PRIMARY KEY (account_id, mode)
  ) STRICT, WITHOUT ROWID`,

  `CREATE TABLE quotes (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    mode TEXT NOT NULL CHECK (mode IN ('live', 'test')),
    body TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    valid_until INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`,

  `CREATE TABLE payments (
    sequence INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    mode TEXT NOT NULL CHECK (mode IN ('live', 'test')),
    merchant_ref TEXT NOT NULL,
    amount TEXT NOT NULL CHECK (amount NOT GLOB '*[^0-9]*' AND amount GLOB '[1-9]*'),
    currency TEXT NOT NULL,
    chain TEXT NOT NULL,
    address TEXT NOT NULL UNIQUE,
    wallet TEXT NOT NULL REFERENCES wallets (fingerprint),
    wallet_index INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'detecting', 'confirmed', 'expired', 'failed')),
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    created_head INTEGER,
    metadata TEXT NOT NULL,
    webhook_url TEXT,
    redirect_url TEXT,
    quote_id TEXT UNIQUE REFERENCES quotes (id),
    usd_value TEXT,
    amount_received TEXT,
    tx_hash TEXT,
    confirmed_at INTEGER,
    failure_reason TEXT,
    ended_at INTEGER,
    UNIQUE (account_id, mode, merchant_ref),
    UNIQUE (wallet, wallet_index),
    CHECK ((status = 'confirmed') = (confirmed_at IS NOT NULL) OR failure_reason IS 'reorged'),
    CHECK ((status = 'failed') = (failure_reason IS NOT NULL)),
    CHECK ((status IN ('pending', 'detecting')) = (ended_at IS NULL))
  ) STRICT`,
  // The list: newest first, by each combination of filters.
  "CREATE INDEX payments_list ON payments (account_id, mode, created_at, sequence)",
  "CREATE INDEX payments_list_status ON payments (account_id, mode, status, created_at, sequence)",
  "CREATE INDEX payments_list_chain ON payments (account_id, mode, chain, created_at, sequence)",
  "CREATE INDEX payments_list_status_chain ON payments (account_id, mode, status, chain, created_at, sequence)",
  // What settlement looks at after a scan, and what a start loads into the match set.
  "CREATE INDEX payments_detecting ON payments (chain, mode) WHERE status = 'detecting'",
  "CREATE INDEX payments_open ON payments (chain, mode, expires_at) WHERE status IN ('pending', 'detecting')",
  "CREATE INDEX payments_ended ON payments (mode, ended_at) WHERE ended_at IS NOT NULL",

  `CREATE TABLE transitions (
    payment_id TEXT NOT NULL REFERENCES payments (id),
    ordinal INTEGER NOT NULL,
    from_status TEXT NOT NULL,
    to_status TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (payment_id, ordinal)
  ) STRICT, WITHOUT ROWID`,

  // The ledger. A row is never changed but for `canonical` and `agreed`; sums count canonical rows only. `tx_hash` is null
  // while nobody can tell which transaction brought the money; `payment_id` where the address was handed out by a copy of
  // this database that is lost. `agreed`: a second provider has the transaction in the same block, or there is none to ask.
  `CREATE TABLE receipts (
    chain TEXT NOT NULL,
    mode TEXT NOT NULL,
    block_hash TEXT NOT NULL,
    address TEXT NOT NULL,
    position TEXT NOT NULL,
    block_number INTEGER NOT NULL,
    block_time INTEGER NOT NULL,
    tx_hash TEXT,
    currency TEXT NOT NULL,
    amount TEXT NOT NULL CHECK (amount NOT GLOB '*[^0-9]*' AND amount GLOB '[1-9]*'),
    payment_id TEXT REFERENCES payments (id),
    canonical INTEGER NOT NULL CHECK (canonical IN (0, 1)),
    agreed INTEGER NOT NULL CHECK (agreed IN (0, 1)),
    seen_at INTEGER NOT NULL,
    PRIMARY KEY (chain, mode, block_hash, address, position),
    CHECK ((tx_hash IS NULL) = (position = 'unattributed'))
  ) STRICT, WITHOUT ROWID`,
  // What belongs to no payment is found by chain and mode too: they follow, being part of the primary key.
  "CREATE INDEX receipts_payment ON receipts (payment_id)",
  "CREATE INDEX receipts_block ON receipts (chain, mode, block_number)",
  // The coins of a chain by address: what its balance is compared with.
  "CREATE INDEX receipts_coin ON receipts (chain, mode, address) WHERE position NOT GLOB 'log:*'",
  "CREATE INDEX receipts_orphaned ON receipts (chain, mode, block_number) WHERE canonical = 0",
  "CREATE INDEX receipts_unagreed ON receipts (chain, mode, block_number) WHERE canonical = 1 AND agreed = 0",

  // Ends of scanned ranges and blocks with receipts: what a reorg is measured against.
  `CREATE TABLE blocks (
    chain TEXT NOT NULL,
    mode TEXT NOT NULL,
    number INTEGER NOT NULL,
    hash TEXT NOT NULL,
    time INTEGER NOT NULL,
    PRIMARY KEY (chain, mode, number)
  ) STRICT, WITHOUT ROWID`,
  "CREATE INDEX blocks_time ON blocks (chain, mode, time)",

  // The checkpoint: every block up to head_number has been read. Behind it: `checked`, the block at which the balances of
  // all open native payments, and of every payment that was over by then, were last compared; `verified_number`, up to
  // which a second pass has read the chain once it was final; the chain's own tags, where it has them.
  `CREATE TABLE scans (
    chain TEXT NOT NULL,
    mode TEXT NOT NULL,
    start_number INTEGER NOT NULL,
    head_number INTEGER NOT NULL,
    head_hash TEXT NOT NULL,
    head_time INTEGER NOT NULL,
    genesis_hash TEXT,
    checked_number INTEGER,
    checked_time INTEGER,
    safe_number INTEGER,
    finalized_number INTEGER,
    verified_number INTEGER NOT NULL,
    PRIMARY KEY (chain, mode)
  ) STRICT, WITHOUT ROWID`,

  // What an address held, by the block where that was seen first: a row for each change, so that the difference to the
  // receipts since is money that no log and no transaction to the address has told of. `nonce`: transactions it has sent.
  `CREATE TABLE balances (
    chain TEXT NOT NULL,
    mode TEXT NOT NULL,
    address TEXT NOT NULL,
    number INTEGER NOT NULL,
    balance TEXT NOT NULL CHECK (balance NOT GLOB '*[^0-9]*' AND balance <> ''),
    nonce INTEGER NOT NULL,
    PRIMARY KEY (chain, mode, address, number)
  ) STRICT, WITHOUT ROWID`,
  "CREATE INDEX balances_block ON balances (chain, mode, number)",

  // Addresses that a lost newer copy of this database may have handed out: money there belongs to a payment nobody knows.
  `CREATE TABLE gap_addresses (
    address TEXT PRIMARY KEY,
    mode TEXT NOT NULL CHECK (mode IN ('live', 'test')),
    wallet TEXT NOT NULL REFERENCES wallets (fingerprint),
    wallet_index INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (wallet, wallet_index)
  ) STRICT, WITHOUT ROWID`,

  // Money that needs a person. One row for what one transaction did to one address; `key` names it whatever block it is
  // in, so that a reorg that mines it again opens nothing new. `gone`: a reorg took the money back.
  `CREATE TABLE exceptions (
    id TEXT PRIMARY KEY,
    address TEXT NOT NULL,
    key TEXT NOT NULL,
    payment_id TEXT REFERENCES payments (id),
    kind TEXT NOT NULL CHECK (kind IN
      ('overpaid', 'paid_again', 'late', 'wrong_token', 'wrong_chain', 'unattributed', 'found_late', 'reorged',
       'unknown_payment')),
    chain TEXT NOT NULL,
    mode TEXT NOT NULL CHECK (mode IN ('live', 'test')),
    tx_hash TEXT,
    currency TEXT NOT NULL,
    amount TEXT NOT NULL CHECK (amount NOT GLOB '*[^0-9]*' AND amount GLOB '[1-9]*'),
    block_number INTEGER,
    opened_at INTEGER NOT NULL,
    closed_at INTEGER,
    outcome TEXT CHECK (outcome IN ('accepted', 'refunded', 'gone')),
    UNIQUE (address, key),
    CHECK ((closed_at IS NULL) = (outcome IS NULL))
  ) STRICT`,
  "CREATE INDEX exceptions_payment ON exceptions (payment_id) WHERE payment_id IS NOT NULL",
  "CREATE INDEX exceptions_unknown ON exceptions (chain, mode) WHERE payment_id IS NULL",
  "CREATE INDEX exceptions_open ON exceptions (opened_at) WHERE closed_at IS NULL",

  // The outbox. `body` is what every attempt sends, byte for byte. `sequence` is the order of their commits, and no number
  // comes twice: the newest event of an owner is never forgotten.
  `CREATE TABLE events (
    sequence INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    account_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    payment_id TEXT NOT NULL REFERENCES payments (id),
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at INTEGER NOT NULL
  ) STRICT`,
  "CREATE INDEX events_payment ON events (payment_id)",
  // The streams: an owner's events in the order of their commits, since `sequence` follows.
  "CREATE INDEX events_owner ON events (account_id, mode)",
  // What is old enough to be forgotten.
  "CREATE INDEX events_age ON events (created_at)",

  `CREATE TABLE endpoints (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    mode TEXT NOT NULL CHECK (mode IN ('live', 'test')),
    url TEXT NOT NULL,
    events TEXT NOT NULL,
    secret BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    deleted_at INTEGER
  ) STRICT`,
  "CREATE INDEX endpoints_owner ON endpoints (account_id, mode) WHERE deleted_at IS NULL",

  // The secret that signs for a payment's own webhookUrl, and until `previous_until` the one before it. Sealed, as every
  // secret here.
  `CREATE TABLE default_secrets (
    account_id TEXT NOT NULL REFERENCES accounts (id),
    mode TEXT NOT NULL CHECK (mode IN ('live', 'test')),
    secret BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    previous_secret BLOB,
    previous_until INTEGER,
    PRIMARY KEY (account_id, mode),
    CHECK ((previous_secret IS NULL) = (previous_until IS NULL))
  ) STRICT, WITHOUT ROWID`,

  // One row per event and target. `endpoint_id` is null for a payment's own webhookUrl; `own_url` is 1 where that URL is
  // owed the event whatever becomes of the endpoint. `target` is the lane it is sent in: the endpoint's id, or the origin
  // of the URL. A row with `next_attempt_at` is due then; one without waits for the first attempt of `after_sequence`, or
  // is done, since `done_at`. An id begins with its event's, so that the event's index finds it.
  // `attempts` counts those of the schedule, `redeliveries` those that somebody asked for besides. While `redelivery` is 1
  // the next attempt is one of the latter, and after it the schedule goes on at `resume_at`.
  `CREATE TABLE deliveries (
    sequence INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    event_id TEXT NOT NULL REFERENCES events (id),
    payment_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    mode TEXT NOT NULL CHECK (mode IN ('live', 'test')),
    endpoint_id TEXT REFERENCES endpoints (id),
    own_url INTEGER NOT NULL CHECK (own_url IN (0, 1)),
    target TEXT NOT NULL,
    url TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'delivered', 'failed', 'cancelled')),
    attempts INTEGER NOT NULL CHECK (attempts BETWEEN 0 AND 6),
    next_attempt_at INTEGER,
    after_sequence INTEGER,
    redeliveries INTEGER NOT NULL DEFAULT 0,
    redelivery INTEGER NOT NULL DEFAULT 0 CHECK (redelivery IN (0, 1)),
    resume_at INTEGER,
    created_at INTEGER NOT NULL,
    done_at INTEGER,
    CHECK (endpoint_id IS NOT NULL OR own_url = 1),
    CHECK (next_attempt_at IS NULL OR redelivery = 1 OR status IN ('pending', 'failed')),
    CHECK (after_sequence IS NULL OR (status = 'pending' AND attempts = 0 AND next_attempt_at IS NULL)),
    CHECK (redelivery = 0 OR next_attempt_at IS NOT NULL),
    CHECK (resume_at IS NULL OR redelivery = 1),
    CHECK ((done_at IS NULL) = (next_attempt_at IS NOT NULL OR after_sequence IS NOT NULL)),
    CHECK (status <> 'pending' OR done_at IS NULL)
  ) STRICT`,
  "CREATE INDEX deliveries_event ON deliveries (event_id)",
  // What somebody ordered again has a queue of its own, behind that of the schedule.
  `CREATE INDEX deliveries_due ON deliveries (target, redelivery, next_attempt_at)
    WHERE next_attempt_at IS NOT NULL`,
  "CREATE INDEX deliveries_unattempted ON deliveries (payment_id) WHERE status = 'pending' AND attempts = 0",
  "CREATE INDEX deliveries_after ON deliveries (after_sequence) WHERE after_sequence IS NOT NULL",
  // All of what is counted, so that no row is read for that.
  "CREATE INDEX deliveries_waiting ON deliveries (endpoint_id, after_sequence) WHERE after_sequence IS NOT NULL",
  // The lists: of an account's, and of one endpoint's.
  "CREATE INDEX deliveries_list ON deliveries (account_id, mode, status, created_at)",
  "CREATE INDEX deliveries_list_endpoint ON deliveries (endpoint_id, status, created_at) WHERE endpoint_id IS NOT NULL",
  // What is old enough to be forgotten.
  "CREATE INDEX deliveries_done ON deliveries (done_at) WHERE done_at IS NOT NULL",

  // One row per target that has something due or scheduled, so that a million rows of one dead target hide no other.
  // `next_at` is never later than the target's first due time, unless it has passed: then it is when the target had its
  // last turn. `slow` targets share a part of the slots.
  `CREATE TABLE lanes (
    target TEXT PRIMARY KEY,
    next_at INTEGER NOT NULL,
    slow INTEGER NOT NULL DEFAULT 0 CHECK (slow IN (0, 1))
  ) STRICT, WITHOUT ROWID`,
  "CREATE INDEX lanes_next ON lanes (slow, next_at)",
  laneTrigger("inserted", "INSERT"),
  laneTrigger("moved", "UPDATE OF target, next_attempt_at"),

  // The log. `address`: what was dialled, for operators alone.
  `CREATE TABLE attempts (
    delivery INTEGER NOT NULL REFERENCES deliveries (sequence),
    number INTEGER NOT NULL,
    redelivery INTEGER NOT NULL DEFAULT 0 CHECK (redelivery IN (0, 1)),
    started_at INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    address TEXT,
    status INTEGER,
    error TEXT,
    body_start TEXT,
    PRIMARY KEY (delivery, number)
  ) STRICT, WITHOUT ROWID`
]

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(statements, (statement) => sql.unsafe(statement), { concurrency: 1, discard: true })
)
