/**
 * People who use the portal, and how they prove who they are. Of one-time links, sessions and passwords only hashes are
 * stored. An operator belongs to no account; everybody else to one.
 */
export const people = [
  `CREATE TABLE people (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL CHECK (octet_length(name) <= 400),
    role TEXT NOT NULL CHECK (role IN ('operator', 'admin', 'viewer')),
    account_id TEXT REFERENCES accounts (id),
    created_at INTEGER NOT NULL,
    disabled_at INTEGER,
    CHECK ((role = 'operator') = (account_id IS NULL))
  ) STRICT, WITHOUT ROWID`,
  "CREATE INDEX people_order ON people (created_at, id)",
  "CREATE INDEX people_of_account ON people (account_id, created_at, id)",
  "CREATE INDEX people_signing_in ON people (account_id) WHERE disabled_at IS NULL",

  // One-time links: SHA-256 of 256 random bits. `refused_at`: when a use of it was first refused.
  `CREATE TABLE sign_in_links (
    hash BLOB PRIMARY KEY,
    person_id TEXT NOT NULL REFERENCES people (id),
    expires_at INTEGER NOT NULL,
    used_at INTEGER,
    refused_at INTEGER
  ) STRICT, WITHOUT ROWID`,
  "CREATE INDEX sign_in_links_of_person ON sign_in_links (person_id, expires_at)",
  "CREATE INDEX sign_in_links_age ON sign_in_links (expires_at)",

  // SHA-256 of 256 random bits. A session that has ended has no row.
  `CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    person_id TEXT NOT NULL REFERENCES people (id),
    created_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    proof_at INTEGER NOT NULL,
    user_agent TEXT NOT NULL CHECK (octet_length(user_agent) <= 800),
    address TEXT NOT NULL
  ) STRICT, WITHOUT ROWID`,
  "CREATE INDEX sessions_of_person ON sessions (person_id, created_at, id)",
  "CREATE INDEX sessions_age ON sessions (seen_at)",

  // The networks that each person has signed in from: at most 20, the newest.
  `CREATE TABLE sign_in_networks (
    person_id TEXT NOT NULL REFERENCES people (id),
    network TEXT NOT NULL,
    seen_at INTEGER NOT NULL,
    PRIMARY KEY (person_id, network)
  ) STRICT, WITHOUT ROWID`,

  // scrypt. `sign_in_name` is in its normal form: NFKC, lower case. `realm`: an account's id, see `realmOf`.
  `CREATE TABLE passwords (
    person_id TEXT PRIMARY KEY REFERENCES people (id),
    realm TEXT NOT NULL,
    sign_in_name TEXT NOT NULL,
    salt BLOB NOT NULL,
    hash BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (realm, sign_in_name)
  ) STRICT, WITHOUT ROWID`,

  // WebAuthn credentials: the id in base64url, the public key as COSE.
  `CREATE TABLE passkeys (
    id TEXT PRIMARY KEY CHECK (octet_length(id) <= 1400),
    person_id TEXT NOT NULL REFERENCES people (id),
    name TEXT NOT NULL CHECK (octet_length(name) <= 400),
    public_key BLOB NOT NULL CHECK (octet_length(public_key) <= 2048),
    counter INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER
  ) STRICT, WITHOUT ROWID`,
  "CREATE INDEX passkeys_of_person ON passkeys (person_id, created_at, id)"
]
