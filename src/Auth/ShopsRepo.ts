import { Effect, Record } from "effect"
import type { AccountId } from "../Domain/Ids.ts"
import { contactLink, plainShop, type Shop, shopTexts } from "../Domain/Shop.ts"
import { type Db, execute } from "../Sql.ts"

type Row = Readonly<Record<(typeof shopTexts)[number], string | null>> & {
  /** Separated by spaces. */
  readonly frame_origins: string
}

const fromRow = ({ frame_origins, ...texts }: Row): Shop => ({
  ...Record.filter(texts, (text, part) => text !== null && (part !== "contact" || contactLink(text) !== undefined)),
  frameOrigins: frame_origins.split(" ").filter((origin) => origin !== "")
})

const columnOf = (part: (typeof shopTexts)[number]) => part.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
const selected = shopTexts.map((part) => `${columnOf(part)} AS ${part}`).join(", ")

/** How the checkout of an account looks. */
export const shopOf = (db: Db, account: AccountId) =>
  Effect.map(db.get<Row>(`SELECT ${selected}, frame_origins FROM shops WHERE account_id = ?`, [account]), (row) =>
    row === undefined ? plainShop : fromRow(row)
  )

const columns = ["account_id", ...shopTexts.map(columnOf), "frame_origins"]

/** Replaces how it looks. */
export const putShop = (account: AccountId, shop: Shop) =>
  execute(`INSERT OR REPLACE INTO shops (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`, [
    account,
    ...shopTexts.map((part) => shop[part] ?? null),
    shop.frameOrigins.join(" ")
  ])
