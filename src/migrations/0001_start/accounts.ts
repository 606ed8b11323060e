/** Accounts, API keys, rate limits, idempotent responses and the audit log. */
export const accounts = [
  `CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
  ) STRICT, WITHOUT ROWID`,

  // What the operator lets an account do; null: as configured. `quota_bytes`: 0 for no quota.
  `CREATE TABLE accounts (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    quota_bytes INTEGER CHECK (quota_bytes >= 0),
    per_minute INTEGER CHECK (per_minute > 0),
    per_hour INTEGER CHECK (per_hour > 0)
  ) STRICT, WITHOUT ROWID`,

  // How the checkout of an account looks and its portal counts; without a row like tilld. `frame_origins`: separated by spaces.
  `CREATE TABLE shops (
    account_id TEXT PRIMARY KEY REFERENCES accounts (id),
    name TEXT,
    accent TEXT,
    logo TEXT,
    website TEXT,
    contact TEXT,
    timezone TEXT,
    currency TEXT,
    minimum_usd TEXT,
    invoice_refs TEXT,
    plugins TEXT,
    frame_origins TEXT NOT NULL
  ) STRICT, WITHOUT ROWID`,

  // A logo that was uploaded: the shop's `logo` is its name.
  `CREATE TABLE shop_images (
    account_id TEXT PRIMARY KEY REFERENCES accounts (id),
    name TEXT NOT NULL,
    bytes BLOB NOT NULL CHECK (length(bytes) <= 40960)
  ) STRICT, WITHOUT ROWID`,

  // `per_minute`, `per_hour`: what the operator set; null: as configured. `lowered_*`: what an admin of the account set below.
  // `plugin_permissions`: of a shop plugin's key, which has no others.
  `CREATE TABLE api_keys (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    mode TEXT NOT NULL CHECK (mode IN ('live', 'test')),
    name TEXT NOT NULL,
    hash BLOB NOT NULL UNIQUE,
    last_four TEXT NOT NULL,
    permissions TEXT NOT NULL,
    plugin_permissions TEXT,
    ips TEXT,
    per_minute INTEGER CHECK (per_minute > 0),
    per_hour INTEGER CHECK (per_hour > 0),
    lowered_per_minute INTEGER CHECK (lowered_per_minute > 0),
    lowered_per_hour INTEGER CHECK (lowered_per_hour > 0),
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    rolled_to TEXT REFERENCES api_keys (id),
    last_used_at INTEGER
  ) STRICT, WITHOUT ROWID`,
  // The list of an account's.
  "CREATE INDEX api_keys_owner ON api_keys (account_id, mode, created_at)",

  // Those that may still work, to count them.
  "CREATE INDEX api_keys_working ON api_keys (account_id, mode, rolled_to, expires_at) WHERE revoked_at IS NULL",
  // Request counts of keys that were active within the hour, by their ids, and of an account's keys that share a limit.
  `CREATE TABLE rate_windows (
    of_id TEXT PRIMARY KEY,
    minute_start INTEGER NOT NULL,
    minute_count INTEGER NOT NULL,
    hour_start INTEGER NOT NULL,
    hour_count INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`,

  // Responses that are repeated for a request with the same Idempotency-Key. The body's hash is keyed with a key derived from
  // the master key, since the body may hold a secret; after a change of that key it matches nothing.
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
  "CREATE INDEX idempotent_responses_age ON idempotent_responses (created_at)"
]
