/**
 * The log of API requests, for the portal. Rows are deleted by age and by number; no account's quota counts them.
 * `request`: what a POST or PATCH sent, shortened and without secrets; `error_code`, `error_message`: of a refusal.
 */
export const requests = [
  `CREATE TABLE requests (
    sequence INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    at INTEGER NOT NULL,
    account_id TEXT NOT NULL,
    mode TEXT NOT NULL CHECK (mode IN ('live', 'test')),
    key_id TEXT NOT NULL,
    method TEXT NOT NULL,
    path TEXT NOT NULL,
    status INTEGER NOT NULL,
    duration_us INTEGER NOT NULL,
    error_code TEXT,
    error_message TEXT CHECK (octet_length(error_message) <= 1024),
    request TEXT CHECK (octet_length(request) <= 1024)
  ) STRICT`,
  // The lists: all of an account's, the refused ones, and those of one key; `sequence` follows in each index.
  "CREATE INDEX requests_owner ON requests (account_id, mode)",
  "CREATE INDEX requests_refused ON requests (account_id, mode) WHERE status >= 400",
  "CREATE INDEX requests_key ON requests (key_id)",
  "CREATE INDEX requests_key_refused ON requests (key_id) WHERE status >= 400",
  "CREATE INDEX requests_id ON requests (id)"
]
