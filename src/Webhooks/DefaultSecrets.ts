import { randomBytes } from "node:crypto"
import { Clock, Effect, type Redacted } from "effect"
import type { Mode } from "../Domain/Chain.ts"
import type { AccountId } from "../Domain/Ids.ts"
import type { Owner } from "../Domain/Owner.ts"
import { Secrets } from "../Secrets.ts"
import { type Db, Reader, Tx, Writer } from "../Sql.ts"

/** What an owner's default secret is sealed for. */
export const contextOf = ({ account, mode }: Owner): string => `default webhook secret ${account} ${mode}`

const sealedFor = (db: Db, { account, mode }: Owner) =>
  Effect.map(
    db.get<{ secret: Uint8Array }>("SELECT secret FROM default_secrets WHERE account_id = ? AND mode = ?", [
      account,
      mode
    ]),
    (row) => row?.secret
  )

/** The secret of the first that comes stays: another may have made one since we looked. */
const storeFirst = (owner: Owner, sealed: Uint8Array, at: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    yield* tx.run(
      `INSERT INTO default_secrets (account_id, mode, secret, created_at) VALUES (?, ?, ?, ?)
       ON CONFLICT (account_id, mode) DO NOTHING`,
      [owner.account, owner.mode, sealed, at]
    )
    return (yield* sealedFor(tx, owner)) ?? sealed
  })

/** What signs for a payment's own webhookUrl: one secret per account and mode, made when it is first asked for. */
export const defaultSecret = Effect.fn("DefaultSecrets.defaultSecret")(function* (account: AccountId, mode: Mode) {
  const secrets = yield* Secrets
  const writer = yield* Writer
  const owner = { account, mode }
  const context = contextOf(owner)
  const stored = yield* sealedFor(yield* Reader, owner)
  const fresh = () => secrets.seal(`whsec_${randomBytes(32).toString("base64")}`, context)
  const sealed = stored ?? (yield* writer.write(storeFirst(owner, fresh(), yield* Clock.currentTimeMillis)))
  const secret: Redacted.Redacted<string> = secrets.open(sealed, context)
  return secret
})
