/** Wallets, quotes, payments and their transitions. */
export const payments = [
  // The counter belongs to the wallet (public key and chain code, hashed), never to an account or a mode: two accounts
  // on one extended public key must never be given the same address.
  `CREATE TABLE wallets (
    fingerprint TEXT PRIMARY KEY,
    next_index INTEGER NOT NULL CHECK (next_index >= 0),
    -- How far it has yet to jump, since an older copy of this database may have been restored.
    jump INTEGER NOT NULL DEFAULT 0 CHECK (jump >= 0),
    -- The n of its account m/44'/60'/n', for the paths of addresses. Null where the key does not say.
    account_number INTEGER CHECK (account_number >= 0),
    -- The address that pays for what is collected, lower case: its coin is no payment. Null where only a mark named the wallet.
    sponsor TEXT
  ) STRICT, WITHOUT ROWID`,

  // One row. `token`: of the last start, compared with the mark outside the database's folder; empty before the first.
  // `jump`: indexes that a wallet which is new here jumps over, since a lost newer copy may have used it. `installation`:
  // the same in this database and all of its backups, and in no other.
  `CREATE TABLE numbering (
    token TEXT NOT NULL,
    jump INTEGER NOT NULL CHECK (jump >= 0),
    -- When it last grew.
    jumped_at INTEGER NOT NULL,
    installation TEXT NOT NULL
  ) STRICT`,
  "INSERT INTO numbering VALUES ('', 0, 0, lower(hex(randomblob(8))))",

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
  // For deletion by age.
  "CREATE INDEX quotes_age ON quotes (created_at)",

  // The tokens that the configuration has offered. Rows never change and none is deleted: a payment keeps the contract and
  // decimals that it was created with, and the contract stays watched after it has left the configuration. `contract`: EIP-55.
  `CREATE TABLE tokens (
    id INTEGER PRIMARY KEY,
    chain TEXT NOT NULL,
    mode TEXT NOT NULL CHECK (mode IN ('live', 'test')),
    symbol TEXT NOT NULL,
    contract TEXT NOT NULL,
    decimals INTEGER NOT NULL CHECK (decimals >= 0),
    UNIQUE (chain, mode, symbol, contract, decimals)
  ) STRICT`,

  // A price without token or network. `choices`: separated by spaces. `payment_id`: that of the customer's last choice.
  // `changes`: how often its status has changed. `checkout_token`: as of payments.
  `CREATE TABLE invoices (
    sequence INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    checkout_token TEXT NOT NULL UNIQUE,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    mode TEXT NOT NULL CHECK (mode IN ('live', 'test')),
    merchant_ref TEXT,
    amount TEXT NOT NULL,
    currency TEXT NOT NULL,
    choices TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('open', 'processing', 'paid', 'expired', 'failed', 'cancelled')),
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    metadata TEXT NOT NULL,
    redirect_url TEXT,
    webhook_url TEXT,
    language TEXT,
    payment_id TEXT REFERENCES payments (id),
    changes INTEGER NOT NULL DEFAULT 0 CHECK (changes >= 0)
  ) STRICT`,
  "CREATE INDEX invoices_list ON invoices (account_id, mode, created_at, sequence)",
  "CREATE INDEX invoices_list_status ON invoices (account_id, mode, status, created_at, sequence)",
  "CREATE INDEX invoices_ref ON invoices (account_id, mode, merchant_ref) WHERE merchant_ref IS NOT NULL",
  "CREATE INDEX invoices_open ON invoices (expires_at) WHERE status = 'open'",

  // Of the invoices that shop plugins made: `asked`, what they are given back, and `told`, what they know, both JSON.
  // `awaiting`: a transfer that came too late may still become certain.
  `CREATE TABLE plugin_invoices (
    invoice_id TEXT PRIMARY KEY REFERENCES invoices (id),
    account_id TEXT NOT NULL,
    mode TEXT NOT NULL CHECK (mode IN ('live', 'test')),
    order_id TEXT,
    asked TEXT NOT NULL CHECK (json_valid(asked)),
    told TEXT CHECK (json_valid(told)),
    awaiting INTEGER NOT NULL DEFAULT 0 CHECK (awaiting IN (0, 1)),
    created_at INTEGER NOT NULL
  ) STRICT`,
  "CREATE INDEX plugin_invoices_list ON plugin_invoices (account_id, mode, created_at)",
  "CREATE INDEX plugin_invoices_order ON plugin_invoices (account_id, mode, order_id) WHERE order_id IS NOT NULL",
  "CREATE INDEX plugin_invoices_awaiting ON plugin_invoices (created_at) WHERE awaiting = 1",

  // `token`: null for the chain's own coin. `due_at`: the due time by the chain's clock, where the machine's clock
  // was behind that when the payment was created; else the payment is due at `expires_at`. `settle_grace`
  // (milliseconds) and `tolerance_bps`: as configured when it was created. `floor`: what is less is not credited by itself. `checkout_token`: its holder sees the
  // payment's checkout page, so it is never logged. `updates`: the number of its `payment.updated` events.
  `CREATE TABLE payments (
    sequence INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    checkout_token TEXT NOT NULL UNIQUE,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    mode TEXT NOT NULL CHECK (mode IN ('live', 'test')),
    merchant_ref TEXT NOT NULL,
    amount TEXT NOT NULL CHECK (amount NOT GLOB '*[^0-9]*' AND amount GLOB '[1-9]*'),
    currency TEXT NOT NULL,
    token INTEGER REFERENCES tokens (id),
    chain TEXT NOT NULL,
    address TEXT NOT NULL UNIQUE,
    wallet TEXT NOT NULL REFERENCES wallets (fingerprint),
    wallet_index INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'detecting', 'confirmed', 'expired', 'failed')),
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    due_at INTEGER,
    settle_grace INTEGER NOT NULL DEFAULT 0 CHECK (settle_grace >= 0),
    tolerance_bps INTEGER NOT NULL DEFAULT 0 CHECK (tolerance_bps BETWEEN 0 AND 5000),
    floor TEXT NOT NULL DEFAULT '0' CHECK (floor NOT GLOB '*[^0-9]*' AND floor <> ''),
    created_head INTEGER,
    metadata TEXT NOT NULL,
    webhook_url TEXT,
    redirect_url TEXT,
    quote_id TEXT REFERENCES quotes (id),
    invoice_id TEXT REFERENCES invoices (id),
    usd_value TEXT,
    amount_received TEXT,
    tx_hash TEXT,
    confirmed_at INTEGER,
    failure_reason TEXT,
    ended_at INTEGER,
    updates INTEGER NOT NULL DEFAULT 0 CHECK (updates >= 0),
    received TEXT NOT NULL DEFAULT '0' CHECK (received NOT GLOB '*[^0-9]*' AND received <> ''),
    refunded TEXT NOT NULL DEFAULT '0' CHECK (refunded NOT GLOB '*[^0-9]*' AND refunded <> ''),
    UNIQUE (account_id, mode, merchant_ref),
    UNIQUE (wallet, wallet_index),
    CHECK ((status = 'confirmed') = (confirmed_at IS NOT NULL) OR failure_reason IS 'reorged'),
    CHECK ((failure_reason IS NOT NULL) = (status = 'failed' OR (status = 'expired' AND failure_reason IS 'cancelled'))),
    CHECK ((status IN ('pending', 'detecting')) = (ended_at IS NULL))
  ) STRICT`,
  // Apart from UNIQUE, which would have an entry for each payment without a quote.
  "CREATE UNIQUE INDEX payments_quote ON payments (quote_id) WHERE quote_id IS NOT NULL",
  "CREATE INDEX payments_invoice ON payments (invoice_id) WHERE invoice_id IS NOT NULL",
  // The list: newest first. Each index costs every payment: of a status or a chain alone, the ranges of the second are merged.
  "CREATE INDEX payments_list ON payments (account_id, mode, created_at, sequence)",
  "CREATE INDEX payments_list_status_chain ON payments (account_id, mode, status, chain, created_at, sequence)",
  // Cancelled payments are expired ones: the portal lists them apart.
  ...["", "chain, "].map(
    (chain) =>
      `CREATE INDEX payments_list_cancelled${chain === "" ? "" : "_chain"}
       ON payments (account_id, mode, ${chain}created_at, sequence) WHERE failure_reason = 'cancelled'`
  ),
  // For the search by the transaction that the payment shows, which may be one that an operator named: the ledger may not
  // have it.
  "CREATE INDEX payments_transaction ON payments (tx_hash) WHERE tx_hash IS NOT NULL",
  // For settlement after a scan, for reorgs, and for loading the watched addresses at a start.
  "CREATE INDEX payments_detecting ON payments (chain, mode) WHERE status = 'detecting'",
  "CREATE INDEX payments_open ON payments (chain, mode, coalesce(due_at, expires_at) + settle_grace) WHERE status IN ('pending', 'detecting')",
  "CREATE INDEX payments_head ON payments (chain, mode, created_head)",
  // How long ago the last one was confirmed, and whether that is unusual.
  "CREATE INDEX payments_confirmed ON payments (chain, mode, confirmed_at) WHERE confirmed_at IS NOT NULL",
  "CREATE INDEX payments_ended ON payments (mode, ended_at) WHERE ended_at IS NOT NULL",

  // For the search by metadata: the texts, numbers and booleans of its first level, as `termsOf` cuts them. A worker adds a
  // payment's rows after the request that made it: `metadata_indexed` in `meta` is the last payment that has them.
  `CREATE TABLE metadata_terms (
    account_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    PRIMARY KEY (account_id, mode, key, value, created_at, sequence)
  ) STRICT, WITHOUT ROWID`,
  "INSERT INTO meta (key, value) VALUES ('metadata_indexed', '0')",

  `CREATE TABLE transitions (
    payment_id TEXT NOT NULL REFERENCES payments (id),
    ordinal INTEGER NOT NULL,
    from_status TEXT NOT NULL,
    to_status TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (payment_id, ordinal)
  ) STRICT, WITHOUT ROWID`
]
