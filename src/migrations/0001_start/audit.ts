const appendOnly = (statement: string, when = "") =>
  `CREATE TRIGGER audit_keeps_what_it_has_${statement.toLowerCase()} BEFORE ${statement} ON audit ${when}
   BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END`

/**
 * The audit log: who did what, when. Rows are never changed or removed; the size of each is bounded. Acts of an account have
 * its id and count towards its quota; an act about the account's people has no mode.
 */
export const audit = [
  `CREATE TABLE audit (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    via TEXT NOT NULL CHECK (via IN ('socket', 'direct', 'api', 'portal', 'daemon')),
    who TEXT NOT NULL CHECK (octet_length(who) <= 400),
    account_id TEXT,
    mode TEXT CHECK (mode IN ('live', 'test')),
    act TEXT NOT NULL CHECK (octet_length(act) <= 40),
    detail TEXT NOT NULL CHECK (octet_length(detail) <= 1000),
    CHECK (via IN ('api', 'portal') OR account_id IS NULL),
    CHECK (via != 'api' OR mode IS NOT NULL),
    CHECK (mode IS NULL OR account_id IS NOT NULL)
  ) STRICT`,
  "CREATE INDEX audit_time ON audit (at)",
  "CREATE INDEX audit_of_account ON audit (account_id, at) WHERE account_id IS NOT NULL",
  // Acts that give somebody access, which the page of the log shows by themselves.
  `CREATE INDEX audit_of_access ON audit (account_id, at) WHERE act IN
    ('people invite', 'people link', 'people enable', 'people role', 'portal password', 'portal passkey', 'keys create',
      'keys roll')`,
  appendOnly("UPDATE"),
  appendOnly("DELETE"),
  // INSERT OR REPLACE would delete a row without firing the delete trigger.
  appendOnly("INSERT", "WHEN EXISTS (SELECT 1 FROM audit WHERE sequence = NEW.sequence)")
]
