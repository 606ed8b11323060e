/** From which networks people have signed in: there they are known, and their passwords are checked before strangers'. */
import { Effect } from "effect"
import type { PersonId } from "../Domain/Ids.ts"
import { anyRow, type Db, execute } from "../Sql.ts"

/** Networks of one person. A further one is kept in place of the one that was seen longest ago. */
const most = 20
/** How long a network stays known after a sign-in, milliseconds. */
const memory = 90 * 24 * 60 * 60_000

/** Notes a sign-in at `now`, Unix milliseconds, and forgets old networks of the person. */
export const seen = (person: PersonId, network: string, now: number) =>
  Effect.zipRight(
    execute(
      `INSERT INTO sign_in_networks (person_id, network, seen_at) VALUES (?, ?, ?)
       ON CONFLICT (person_id, network) DO UPDATE SET seen_at = excluded.seen_at`,
      [person, network, now]
    ),
    execute(
      `DELETE FROM sign_in_networks WHERE person_id = ? AND network != ? AND (seen_at < ? OR network IN
         (SELECT network FROM sign_in_networks WHERE person_id = ? AND network != ?
          ORDER BY seen_at DESC, network LIMIT -1 OFFSET ${most - 1}))`,
      [person, network, now - memory, person, network]
    )
  )

/** Forgets the networks of a person. */
export const forget = (person: PersonId) => execute("DELETE FROM sign_in_networks WHERE person_id = ?", [person])

/** Whether the person with this id has signed in from a network. */
export const isKnown = (db: Db, person: string, network: string, now: number) =>
  anyRow(db, "SELECT 1 FROM sign_in_networks WHERE person_id = ? AND network = ? AND seen_at >= ?", [
    ...[person, network],
    now - memory
  ])
