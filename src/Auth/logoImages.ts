/** Logos that were uploaded in the portal: small pictures, kept in the store. The shop's `logo` is then `uploaded.` and their type. */
import { Effect } from "effect"
import type { AccountId } from "../Domain/Ids.ts"
import { type Db, Tx, Writer } from "../Sql.ts"
import { putShop, shopOf } from "./ShopsRepo.ts"

/** Bytes: with its text in base64, a form's body has room for it. */
export const largestImage = 40 * 1024

/** How files of a type begin. No SVG: it could have scripts, and only the operator's are trusted. */
const starts = { png: [0x89, 0x50, 0x4e, 0x47], jpg: [0xff, 0xd8, 0xff], webp: [0x52, 0x49, 0x46, 0x46] } as const

/** The type of a picture by its first bytes; undefined for what is none, or is too large. */
export const imageTypeOf = (bytes: Buffer): keyof typeof starts | undefined => {
  if (bytes.length > largestImage) return undefined
  const type = (["png", "jpg", "webp"] as const).find((each) => starts[each].every((byte, at) => bytes[at] === byte))
  return type === "webp" && bytes.toString("latin1", 8, 12) !== "WEBP" ? undefined : type
}

/** Stores a picture as the logo of an account's checkout. */
export const storeLogoImage = (account: AccountId, bytes: Buffer, type: keyof typeof starts) =>
  Effect.flatMap(Writer, (writer) =>
    writer.write(
      Effect.gen(function* () {
        const tx = yield* Tx
        const logo = `uploaded.${type}`
        yield* tx.run("INSERT OR REPLACE INTO shop_images (account_id, name, bytes) VALUES (?, ?, ?)", [
          account,
          logo,
          bytes
        ])
        yield* putShop(account, { ...(yield* shopOf(tx, account)), logo })
      })
    )
  )

/** The picture of that name; undefined where there is none. */
export const logoImage = (db: Db, account: AccountId, name: string) =>
  Effect.map(
    db.get<{ bytes: Buffer }>("SELECT bytes FROM shop_images WHERE account_id = ? AND name = ?", [account, name]),
    (row) => row?.bytes
  )

/** Forgets the picture of an account whose logo is another one now. */
export const dropOtherImage = (account: AccountId, logo: string | undefined) =>
  Effect.flatMap(Tx, (tx) =>
    tx.run("DELETE FROM shop_images WHERE account_id = ? AND name <> ?", [account, logo ?? ""])
  )
