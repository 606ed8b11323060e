import { Effect } from "effect"
import type { AccountId } from "../Domain/Ids.ts"
import { plainShop, type Shop } from "../Domain/Shop.ts"
import { type Db, Tx } from "../Sql.ts"

interface Row {
  readonly name: string | null
  readonly accent: string | null
  readonly logo: string | null
  readonly website: string | null
  /** Separated by spaces. */
  readonly frame_origins: string
}

const fromRow = ({ accent, frame_origins, logo, name, website }: Row): Shop => ({
  ...(name === null ? {} : { name }),
  ...(accent === null ? {} : { accent }),
  ...(logo === null ? {} : { logo }),
  ...(website === null ? {} : { website }),
  frameOrigins: frame_origins.split(" ").filter((origin) => origin !== "")
})

/** How the checkout of an account looks. */
export const shopOf = (db: Db, account: AccountId) =>
  Effect.map(
    db.get<Row>("SELECT name, accent, logo, website, frame_origins FROM shops WHERE account_id = ?", [account]),
    (row) => (row === undefined ? plainShop : fromRow(row))
  )

/** Replaces how it looks. */
export const putShop = Effect.fn("ShopsRepo.putShop")(function* (account: AccountId, shop: Shop) {
  const tx = yield* Tx
  yield* tx.run(
    `INSERT INTO shops (account_id, name, accent, logo, website, frame_origins) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (account_id) DO UPDATE SET name = excluded.name, accent = excluded.accent, logo = excluded.logo,
       website = excluded.website, frame_origins = excluded.frame_origins`,
    [
      account,
      shop.name ?? null,
      shop.accent ?? null,
      shop.logo ?? null,
      shop.website ?? null,
      shop.frameOrigins.join(" ")
    ]
  )
})
