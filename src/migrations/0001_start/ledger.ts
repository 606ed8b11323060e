/** The lists of exceptions: every combination of filters has its index. */
const exceptionLists = [
  "",
  "_status",
  "_kind",
  "_chain",
  "_status_kind",
  "_status_chain",
  "_kind_chain",
  "_status_kind_chain"
]
const filteredBy = (list: string): string => list.replaceAll("_", ", ").replace("status", "is_open")

/**
 * The worth of a row, frozen when it was first stored: `rate`, a decimal, units of `rate_currency` for one whole token, and
 * where it is from. Without a rate, `rate_source` is the reason why.
 */
const frozen = `rate TEXT,
    rate_currency TEXT,
    rate_source TEXT,
    CHECK ((rate_currency IS NULL) = (rate_source IS NULL)),
    CHECK (rate IS NULL OR rate_currency IS NOT NULL)`

/** SQL: a receipt that the books have. Money without a transaction has no second provider that could corroborate it. */
export const isBooked = "canonical = 1 AND (corroborated = 1 OR tx_hash IS NULL)"

/** SQL: the amount of a receipt as text that sorts as the amounts do. */
export const bySize = "printf('%02d%s', length(amount), amount)"

/** SQL: one of which some is income. */
export const isIncome = `${isBooked} AND credited <> '0'`

/** SQL: a refund that the books have: it was sent back, or a person says so. */
export const isBookedRefund = "status IN ('noted', 'seen', 'final')"

const addSender = `INSERT OR IGNORE INTO payment_senders (account_id, mode, sender, created_at, sequence)
  SELECT account_id, mode, NEW.sender, created_at, sequence FROM payments WHERE id = NEW.payment_id AND NEW.sender IS NOT NULL;`

/** The ledger: receipts, blocks, checkpoints, balances, and exceptions. */
export const ledger = [
  // The receipts. Amounts and places never change, only what is known of a row; sums count canonical rows only.
  // `tx_hash`: null while no provider can name the transaction. `payment_id`: null where a lost copy of this database handed
  // out the address. `corroborated`: two providers have the transaction in the same block, with its confirmations, or only
  // one is configured. `denied_by`: the host of a provider whose head has reached the block and which does not have the
  // receipt: no sole provider decides on it. `reported_by`: the host of the provider that reported it. `unverifiable`: for
  // long no other provider has had the state or traces to check it. `refuted`: two providers deny it; it is not canonical and
  // never becomes so again.
  // `since_*`: money without a transaction arrived in that block at the earliest, and in the row's own at the latest.
  // `since_time` is the time of the newest stored block at or before it. Null where the block is known.
  // `listed`: what settlement reads the row as: the payment's own money, or stray, that is of another currency or chain, or at
  // an address whose payment is lost. Null where it is the payment's own and too small to be credited: it is in a total alone.
  // `sender`: who sent it, by the providers that have corroborated it; null where they differ, and for money that moved
  // inside contracts. `kind`: what settlement takes the money for, and `credited` the part that pays for the payment: null
  // until then.
  `CREATE TABLE receipts (
    chain TEXT NOT NULL,
    mode TEXT NOT NULL,
    block_hash TEXT NOT NULL,
    address TEXT NOT NULL,
    position TEXT NOT NULL,
    place INTEGER NOT NULL DEFAULT 0,
    block_number INTEGER NOT NULL,
    block_time INTEGER NOT NULL,
    tx_hash TEXT,
    currency TEXT NOT NULL,
    amount TEXT NOT NULL CHECK (amount NOT GLOB '*[^0-9]*' AND amount GLOB '[1-9]*'),
    sender TEXT,
    payment_id TEXT REFERENCES payments (id),
    account_id TEXT REFERENCES accounts (id),
    canonical INTEGER NOT NULL CHECK (canonical IN (0, 1)),
    corroborated INTEGER NOT NULL CHECK (corroborated IN (0, 1)),
    denied_by TEXT,
    reported_by TEXT,
    unverifiable INTEGER NOT NULL DEFAULT 0 CHECK (unverifiable IN (0, 1)),
    refuted INTEGER NOT NULL DEFAULT 0 CHECK (refuted IN (0, 1)),
    seen_at INTEGER NOT NULL,
    since_number INTEGER,
    since_time INTEGER,
    listed TEXT DEFAULT 'own' CHECK (listed IN ('own', 'stray')),
    kind TEXT,
    credited TEXT CHECK (credited NOT GLOB '*[^0-9]*' AND credited <> ''),
    ${frozen},
    PRIMARY KEY (chain, mode, block_hash, address, position),
    CHECK ((tx_hash IS NULL) = (position = 'unattributed')),
    CHECK (canonical + refuted < 2),
    CHECK ((since_number IS NULL) = (since_time IS NULL)),
    CHECK (since_number IS NULL OR (tx_hash IS NULL AND since_number < block_number)),
    CHECK (listed IS NOT NULL OR position GLOB 'log:*' OR position GLOB 'tx:*')
  ) STRICT, WITHOUT ROWID`,
  `CREATE INDEX receipts_booked ON receipts (mode, account_id, block_time) WHERE ${isBooked}`,
  // In the order of the ledger, with all that sums need.
  `CREATE INDEX receipts_income ON receipts (mode, account_id, block_time, chain, block_hash, address, position, currency,
     credited, rate, rate_currency, payment_id, canonical, corroborated, tx_hash) WHERE ${isIncome}`,
  `CREATE INDEX receipts_unrated ON receipts (chain)
   WHERE rate_currency IS NULL AND canonical = 1 AND listed IS NOT NULL`,
  // What counts first comes first: settlement reads so many rows of each kind, in this order.
  `CREATE INDEX receipts_payment
   ON receipts (payment_id, listed, canonical DESC, corroborated DESC, block_number, place, position)`,
  // Of those that are too small to be read: whether one could complete the payment.
  `CREATE INDEX receipts_small ON receipts (payment_id, corroborated, ${bySize}) WHERE listed IS NULL AND canonical = 1`,
  // For the search by transaction.
  "CREATE INDEX receipts_transaction ON receipts (tx_hash, payment_id) WHERE payment_id IS NOT NULL AND tx_hash IS NOT NULL",
  `CREATE INDEX receipts_lost ON receipts (address, chain, mode, canonical DESC, corroborated DESC, block_number, place)
   WHERE payment_id IS NULL`,
  "CREATE INDEX receipts_replaced ON receipts (payment_id, tx_hash, currency, amount) WHERE canonical = 0",
  "CREATE INDEX receipts_block ON receipts (chain, mode, block_number)",
  // The native receipts of a chain by address, for balance reconciliation.
  "CREATE INDEX receipts_coin ON receipts (chain, mode, address) WHERE position NOT GLOB 'log:*'",
  "CREATE INDEX receipts_denied ON receipts (chain, mode, tx_hash) WHERE denied_by IS NOT NULL",
  "CREATE INDEX receipts_orphaned ON receipts (chain, mode, block_number) WHERE canonical = 0",
  `CREATE INDEX receipts_uncorroborated ON receipts (chain, mode, listed, block_number)
   WHERE canonical = 1 AND corroborated = 0 AND listed IS NOT NULL`,

  // Who sent something to which payments, by their receipts, in the order of a page. Kept by triggers.
  `CREATE TABLE payment_senders (
    account_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    sender TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    PRIMARY KEY (account_id, mode, sender, created_at, sequence)
  ) STRICT, WITHOUT ROWID`,
  `CREATE TRIGGER receipts_sender_added AFTER INSERT ON receipts WHEN NEW.payment_id IS NOT NULL BEGIN ${addSender} END`,
  // A second provider may know of another sender, or of none.
  `CREATE TRIGGER receipts_sender_changed AFTER UPDATE OF sender ON receipts
   WHEN NEW.payment_id IS NOT NULL AND NEW.sender IS NOT OLD.sender BEGIN
     DELETE FROM payment_senders WHERE (account_id, mode, created_at, sequence) =
       (SELECT account_id, mode, created_at, sequence FROM payments WHERE id = OLD.payment_id)
       AND sender = OLD.sender AND NOT EXISTS (
         SELECT 1 FROM receipts WHERE payment_id = OLD.payment_id AND sender = OLD.sender);
     ${addSender}
   END`,

  // What was moved away from receiving addresses, as a broadcast has accounted for it. `place`: of the move in its plan.
  // `refund`: what it sends back, where it is no collection. `block_time`: Unix seconds. `nonce`: of the address's own
  // transaction; null for a transfer that the address only signed.
  `CREATE TABLE collected (
    chain TEXT NOT NULL,
    mode TEXT NOT NULL,
    tx_hash TEXT NOT NULL,
    place INTEGER NOT NULL,
    address TEXT NOT NULL,
    receiver TEXT NOT NULL,
    currency TEXT NOT NULL,
    amount TEXT NOT NULL CHECK (amount NOT GLOB '*[^0-9]*' AND amount GLOB '[1-9]*'),
    refund TEXT,
    account_id TEXT REFERENCES accounts (id),
    payment_id TEXT REFERENCES payments (id),
    block_time INTEGER NOT NULL,
    noted_at INTEGER NOT NULL,
    nonce INTEGER CHECK (nonce >= 0),
    ${frozen},
    PRIMARY KEY (chain, mode, tx_hash, place)
  ) STRICT, WITHOUT ROWID`,
  "CREATE INDEX collected_address ON collected (address)",
  "CREATE INDEX collected_booked ON collected (mode, account_id, block_time)",
  "CREATE INDEX collected_payment ON collected (payment_id)",
  "CREATE INDEX collected_noted ON collected (noted_at)",

  // Wei that the transactions of broadcasts have paid for gas, also those that failed, and those that bring gas to an address.
  // `payer`: the address of a payment, or the wallet's sponsor. `receiver`: whom the transaction calls. Account and payment
  // are null where it served several.
  `CREATE TABLE gas (
    chain TEXT NOT NULL,
    mode TEXT NOT NULL,
    tx_hash TEXT NOT NULL,
    payer TEXT NOT NULL,
    receiver TEXT NOT NULL,
    amount TEXT NOT NULL CHECK (amount NOT GLOB '*[^0-9]*' AND amount <> ''),
    account_id TEXT REFERENCES accounts (id),
    payment_id TEXT REFERENCES payments (id),
    block_time INTEGER NOT NULL,
    ${frozen},
    PRIMARY KEY (chain, mode, tx_hash)
  ) STRICT, WITHOUT ROWID`,
  "CREATE INDEX gas_booked ON gas (mode, account_id, block_time)",
  "CREATE INDEX gas_payment ON gas (payment_id)",

  // Ends of scanned ranges and blocks with receipts: reorgs are detected by their hashes.
  `CREATE TABLE blocks (
    chain TEXT NOT NULL,
    mode TEXT NOT NULL,
    number INTEGER NOT NULL,
    hash TEXT NOT NULL,
    time INTEGER NOT NULL,
    PRIMARY KEY (chain, mode, number)
  ) STRICT, WITHOUT ROWID`,
  "CREATE INDEX blocks_time ON blocks (chain, mode, time)",

  // The checkpoint: every block up to head_number has been read. Further: `checked`, the block of the last balance
  // reconciliation, of all open native payments and of every payment that was over by then; `verified_number`, up to which the
  // verification pass has read deep blocks again; the chain's own tags, where it has them; `audited`, the address after which
  // the audit of balances goes on, and when it last read some, Unix milliseconds.
  `CREATE TABLE scans (
    chain TEXT NOT NULL,
    mode TEXT NOT NULL,
    start_number INTEGER NOT NULL,
    head_number INTEGER NOT NULL,
    head_hash TEXT NOT NULL,
    head_time INTEGER NOT NULL,
    genesis_hash TEXT,
    chain_id INTEGER,
    checked_number INTEGER,
    checked_time INTEGER,
    safe_number INTEGER,
    finalized_number INTEGER,
    verified_number INTEGER NOT NULL,
    audited TEXT NOT NULL DEFAULT '',
    audited_at INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (chain, mode)
  ) STRICT, WITHOUT ROWID`,

  // Payments for which a second provider was searched before their end, and up to which block: it has no money for them that
  // the ledger lacks. Where several providers are configured, nothing expires, fails or is undone without it.
  `CREATE TABLE searches (
    payment_id TEXT PRIMARY KEY REFERENCES payments (id),
    chain TEXT NOT NULL,
    mode TEXT NOT NULL,
    number INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`,
  "CREATE INDEX searches_block ON searches (chain, mode, number)",

  // Balances by the block where they were first seen, a row for each change: a difference to the receipts since is money that
  // no log and no transaction to the address shows. `nonce`: transactions that the address has sent.
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

  // Money on the chain at an address of ours (EIP-55) that is in no row, as the audit of balances has found it. `number`: of the
  // block after which it was first seen. `told`: it still was once that block had been verified.
  `CREATE TABLE unaccounted (
    chain TEXT NOT NULL,
    mode TEXT NOT NULL,
    address TEXT NOT NULL,
    currency TEXT NOT NULL,
    amount TEXT NOT NULL CHECK (amount NOT GLOB '*[^0-9]*' AND amount GLOB '[1-9]*'),
    number INTEGER NOT NULL,
    told INTEGER NOT NULL CHECK (told IN (0, 1)),
    PRIMARY KEY (chain, mode, address, currency)
  ) STRICT, WITHOUT ROWID`,

  // Addresses that a lost newer copy of this database may have handed out: money there belongs to a lost payment.
  `CREATE TABLE gap_addresses (
    address TEXT PRIMARY KEY,
    mode TEXT NOT NULL CHECK (mode IN ('live', 'test')),
    wallet TEXT NOT NULL REFERENCES wallets (fingerprint),
    wallet_index INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (wallet, wallet_index)
  ) STRICT, WITHOUT ROWID`,

  // The chains on which a skipped address has been searched for money from before it was watched.
  `CREATE TABLE gap_looks (
    chain TEXT NOT NULL,
    address TEXT NOT NULL REFERENCES gap_addresses (address),
    PRIMARY KEY (chain, address)
  ) STRICT, WITHOUT ROWID`,

  // Money that needs a person's decision, one row for the money of one transaction at one address. `key` identifies it
  // independent of the block, so that a reorg that mines it again opens nothing new. `gone`: a reorg orphaned the money.
  // `sent_back`: the refunded total that `amount` is without; while the row is open, `amount` is what is left. `sender`: of its receipts, null where
  // there are several. `payment_id`, `account_id`: null where a lost copy of this database handed out the address. `wallet`,
  // `wallet_index`: of the address. `decision_tx`, `note`: what its acceptance named. `revision` counts the changes;
  // those above `reported` have no event yet. `rank`: the order for people, in which open rows that may have cost somebody a
  // delivery come first.
  `CREATE TABLE exceptions (
    sequence INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    address TEXT NOT NULL,
    key TEXT NOT NULL,
    payment_id TEXT REFERENCES payments (id),
    account_id TEXT REFERENCES accounts (id),
    wallet TEXT REFERENCES wallets (fingerprint),
    wallet_index INTEGER,
    kind TEXT NOT NULL CHECK (kind IN
      ('overpaid', 'underpaid', 'late', 'wrong_token', 'wrong_chain', 'unattributed', 'found_late', 'reorged',
       'unknown_payment')),
    chain TEXT NOT NULL,
    mode TEXT NOT NULL CHECK (mode IN ('live', 'test')),
    tx_hash TEXT,
    sender TEXT,
    currency TEXT NOT NULL,
    amount TEXT NOT NULL CHECK (amount NOT GLOB '*[^0-9]*' AND amount GLOB '[1-9]*'),
    sent_back TEXT NOT NULL DEFAULT '0' CHECK (sent_back NOT GLOB '*[^0-9]*' AND sent_back <> ''),
    block_number INTEGER,
    opened_at INTEGER NOT NULL,
    closed_at INTEGER,
    outcome TEXT CHECK (outcome IN ('accepted', 'refunded', 'gone')),
    decision_tx TEXT,
    note TEXT,
    revision INTEGER NOT NULL DEFAULT 1,
    reported INTEGER NOT NULL DEFAULT 0,
    is_open INTEGER AS (closed_at IS NULL) VIRTUAL,
    rank INTEGER AS (iif(closed_at IS NULL, 0, 2) + iif(kind IN ('found_late', 'reorged'), 0, 1)) VIRTUAL,
    UNIQUE (address, key),
    CHECK ((closed_at IS NULL) = (outcome IS NULL))
  ) STRICT`,
  "CREATE INDEX exceptions_payment ON exceptions (payment_id, rank, opened_at, id) WHERE payment_id IS NOT NULL",
  "CREATE INDEX exceptions_open ON exceptions (rank, opened_at, id) WHERE closed_at IS NULL",
  // For counts by kind.
  "CREATE INDEX exceptions_open_kind ON exceptions (mode, kind) WHERE closed_at IS NULL",
  "CREATE INDEX exceptions_unreported ON exceptions (payment_id) WHERE revision > reported",
  ...exceptionLists.map(
    (list) =>
      `CREATE INDEX exceptions_list${list} ON exceptions (account_id, mode${filteredBy(list)}, opened_at, sequence)
       WHERE account_id IS NOT NULL`
  ),
  `CREATE INDEX exceptions_list_payment ON exceptions (payment_id, opened_at, sequence) WHERE payment_id IS NOT NULL`,

  // Money that goes back. `receiver`: to whom. `sender`: who sent it, and `position`: the transfer within its transaction, once the
  // chain has shown it: each transfer pays one refund. `plan_*`: the transfer of a signed plan that pays it. `payment_id`,
  // `account_id`: null where a lost copy of this database handed out the address. `block_time`: Unix seconds; of its record, until
  // a broadcast or the lookup knows the block.
  `CREATE TABLE refunds (
    sequence INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    payment_id TEXT REFERENCES payments (id),
    account_id TEXT REFERENCES accounts (id),
    mode TEXT NOT NULL CHECK (mode IN ('live', 'test')),
    address TEXT NOT NULL,
    chain TEXT NOT NULL,
    currency TEXT NOT NULL,
    amount TEXT NOT NULL CHECK (amount NOT GLOB '*[^0-9]*' AND amount GLOB '[1-9]*'),
    receiver TEXT,
    status TEXT NOT NULL CHECK (status IN ('noted', 'begun', 'seen', 'final', 'not_found', 'failed')),
    tx_hash TEXT,
    sender TEXT,
    position TEXT,
    note TEXT,
    problem TEXT,
    plan_digest TEXT,
    plan_place INTEGER,
    plan_way TEXT CHECK (plan_way IN ('authorization', 'token', 'native')),
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    block_time INTEGER NOT NULL,
    ${frozen},
    CHECK ((plan_digest IS NULL) = (plan_place IS NULL) AND (plan_digest IS NULL) = (plan_way IS NULL)),
    CHECK (status NOT IN ('seen', 'final') OR tx_hash IS NOT NULL)
  ) STRICT`,
  "CREATE INDEX refunds_payment ON refunds (payment_id, sequence) WHERE payment_id IS NOT NULL",
  `CREATE INDEX refunds_booked ON refunds (mode, account_id, block_time, sequence) WHERE ${isBookedRefund}`,
  "CREATE INDEX refunds_lost ON refunds (address) WHERE payment_id IS NULL",
  "CREATE INDEX refunds_list ON refunds (account_id, mode, created_at, sequence) WHERE account_id IS NOT NULL",
  "CREATE INDEX refunds_list_status ON refunds (account_id, mode, status, created_at, sequence) WHERE account_id IS NOT NULL",
  "CREATE UNIQUE INDEX refunds_transfer ON refunds (chain, mode, tx_hash, position) WHERE tx_hash IS NOT NULL",
  // Those that the chain is asked about, and those whose money stays at its address.
  "CREATE INDEX refunds_awaited ON refunds (chain, mode, sequence) WHERE status NOT IN ('final', 'failed')",

  // The money that a refund sends back, by the transaction that brought it, or the block at which it was seen. `of_confirmed`: it
  // was what a confirmed payment counts, which stays paid.
  `CREATE TABLE refund_parts (
    refund_id TEXT NOT NULL REFERENCES refunds (id),
    place INTEGER NOT NULL,
    exception_id TEXT REFERENCES exceptions (id),
    tx_hash TEXT,
    block_number INTEGER,
    amount TEXT NOT NULL CHECK (amount NOT GLOB '*[^0-9]*' AND amount GLOB '[1-9]*'),
    of_confirmed INTEGER NOT NULL CHECK (of_confirmed IN (0, 1)),
    PRIMARY KEY (refund_id, place),
    CHECK ((tx_hash IS NULL) <> (block_number IS NULL))
  ) STRICT, WITHOUT ROWID`,
  "CREATE INDEX refund_parts_exception ON refund_parts (exception_id) WHERE exception_id IS NOT NULL",

  // What shop plugins want sent back, before the customer has said to which address: then it has a refund.
  `CREATE TABLE pull_payments (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL,
    mode TEXT NOT NULL CHECK (mode IN ('live', 'test')),
    payment_id TEXT NOT NULL REFERENCES payments (id),
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    amount TEXT NOT NULL,
    currency TEXT NOT NULL,
    units TEXT NOT NULL CHECK (units NOT GLOB '*[^0-9]*' AND units GLOB '[1-9]*'),
    created_at INTEGER NOT NULL,
    refund_id TEXT REFERENCES refunds (id)
  ) STRICT, WITHOUT ROWID`,
  "CREATE INDEX pull_payments_payment ON pull_payments (payment_id)"
]
