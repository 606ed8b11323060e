// Every change of a delivery updates its lane.
const laneTrigger = (name: string, change: string) =>
  `CREATE TRIGGER deliveries_${name} AFTER ${change} ON deliveries WHEN NEW.next_attempt_at IS NOT NULL
  BEGIN
    INSERT INTO lanes (target, account_id, next_at) VALUES (NEW.target, NEW.account_id, NEW.next_attempt_at)
    ON CONFLICT (target) DO UPDATE SET next_at = excluded.next_at WHERE excluded.next_at < lanes.next_at;
  END`

/** Events, webhook endpoints, deliveries and their attempts. */
export const webhooks = [
  // The outbox. `payment_id`: the payment, or the invoice, that it tells of. `body` is what every attempt sends, byte for byte. `sequence` is the commit order, and no number is used
  // twice: the newest event of an owner is never deleted.
  `CREATE TABLE events (
    sequence INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    account_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    payment_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at INTEGER NOT NULL
  ) STRICT`,
  "CREATE INDEX events_payment ON events (payment_id)",
  // For the streams: an owner's events in commit order, since `sequence` follows in the index.
  "CREATE INDEX events_owner ON events (account_id, mode)",

  // `secret` signs, and until `previous_until` the previous one does too. Sealed, like every secret here. `plugin`: the settings
  // of an endpoint that a shop plugin registered, as JSON; its `events` are none.
  `CREATE TABLE endpoints (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    mode TEXT NOT NULL CHECK (mode IN ('live', 'test')),
    url TEXT NOT NULL,
    events TEXT NOT NULL,
    plugin TEXT,
    secret BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    deleted_at INTEGER,
    previous_secret BLOB,
    previous_until INTEGER,
    CHECK ((previous_secret IS NULL) = (previous_until IS NULL))
  ) STRICT`,
  "CREATE INDEX endpoints_owner ON endpoints (account_id, mode) WHERE deleted_at IS NULL",
  "CREATE INDEX endpoints_deleted ON endpoints (deleted_at) WHERE deleted_at IS NOT NULL",

  // The secrets that sign for payments' own webhookUrls.
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

  // One row per event and target. `endpoint_id` is null for a payment's own webhookUrl; `own_url` is 1 where that URL gets
  // the event even if the endpoint is deleted. `url` is where the last attempt went; the next one goes to the endpoint's
  // present URL, or here where there is no endpoint. `target` is the lane it is sent in: the endpoint's id, or the origin of the
  // URL, the account and the mode. `plugin` is 1 where the endpoint is a shop plugin's. A row with `next_attempt_at` is due then; one without waits for the first attempt of
  // `after_sequence`, or is done, since `done_at`. An id begins with its event's, so that the event's index finds it.
  // `attempts` counts the scheduled attempts, `redeliveries` the ones ordered by hand. While `redelivery` is 1 the next
  // attempt is one of the latter, and after it the schedule continues at `resume_at`.
  `CREATE TABLE deliveries (
    sequence INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    event_id TEXT NOT NULL REFERENCES events (id),
    payment_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    mode TEXT NOT NULL CHECK (mode IN ('live', 'test')),
    endpoint_id TEXT REFERENCES endpoints (id),
    own_url INTEGER NOT NULL CHECK (own_url IN (0, 1)),
    plugin INTEGER NOT NULL DEFAULT 0 CHECK (plugin IN (0, 1)),
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
  // Redeliveries have a queue of their own, behind the scheduled one.
  `CREATE INDEX deliveries_due ON deliveries (target, redelivery, next_attempt_at)
    WHERE next_attempt_at IS NOT NULL`,
  "CREATE INDEX deliveries_unattempted ON deliveries (payment_id) WHERE status = 'pending' AND attempts = 0",
  "CREATE INDEX deliveries_after ON deliveries (after_sequence) WHERE after_sequence IS NOT NULL",
  // All of what is counted, so that no row is read for that.
  "CREATE INDEX deliveries_waiting ON deliveries (endpoint_id, after_sequence) WHERE after_sequence IS NOT NULL",
  // The lists: of an account's, and of one endpoint's.
  "CREATE INDEX deliveries_list ON deliveries (account_id, mode, plugin, status, created_at)",
  "CREATE INDEX deliveries_list_endpoint ON deliveries (endpoint_id, status, created_at) WHERE endpoint_id IS NOT NULL",
  // Those of which an attempt has failed and none has succeeded: few, beside a long queue.
  `CREATE INDEX deliveries_failing ON deliveries (account_id, mode, plugin, created_at)
    WHERE status IN ('pending', 'failed') AND attempts + redeliveries > 0`,
  `CREATE INDEX deliveries_failing_endpoint ON deliveries (endpoint_id, created_at)
    WHERE endpoint_id IS NOT NULL AND status IN ('pending', 'failed') AND attempts + redeliveries > 0`,
  // How a receiver is doing, by the order of events: their times are as wrong as a clock was.
  `CREATE INDEX deliveries_arrived ON deliveries (endpoint_id)
    WHERE endpoint_id IS NOT NULL AND status = 'delivered'`,
  `CREATE INDEX deliveries_not_arrived ON deliveries (endpoint_id)
    WHERE endpoint_id IS NOT NULL AND status IN ('pending', 'failed') AND attempts + redeliveries > 0`,
  `CREATE INDEX deliveries_tried_again ON deliveries (account_id, mode)
    WHERE status IN ('pending', 'failed') AND attempts + redeliveries > 0 AND next_attempt_at IS NOT NULL`,
  // For deletion by age.
  "CREATE INDEX deliveries_done ON deliveries (done_at) WHERE done_at IS NOT NULL",

  // One row per target that has something due or scheduled, so that a million rows of one dead target hide no other.
  // `next_at` is never later than the target's first due time, unless it has passed: then it is when the target had its
  // last turn. `slow` targets share a part of their account's slots.
  `CREATE TABLE lanes (
    target TEXT PRIMARY KEY,
    account_id TEXT NOT NULL,
    next_at INTEGER NOT NULL,
    slow INTEGER NOT NULL DEFAULT 0 CHECK (slow IN (0, 1))
  ) STRICT, WITHOUT ROWID`,
  "CREATE INDEX lanes_next ON lanes (slow, next_at)",
  // Each account's by themselves: another's, however many, are not read.
  "CREATE INDEX lanes_account ON lanes (account_id, slow, next_at)",
  laneTrigger("inserted", "INSERT"),
  laneTrigger("moved", "UPDATE OF target, next_attempt_at"),

  // The log: of each delivery the first attempt and the last ten. `address`: what was dialled, for operators alone. What an
  // answer's body began with is stored once: `body_of` is the number of an earlier attempt that had the same.
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
    body_of INTEGER,
    PRIMARY KEY (delivery, number),
    CHECK (body_start IS NULL OR body_of IS NULL)
  ) STRICT, WITHOUT ROWID`
]
