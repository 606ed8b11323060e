/** How the checkout of an account looks: its row, its change, and its logo. */
import { constants } from "node:fs"
import { type FileHandle, open, readdir } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Either, Predicate, Record, Schema } from "effect"
import { ShopRefused } from "../Domain/Account.ts"
import { offText } from "../Domain/Currency.ts"
import type { AccountId } from "../Domain/Ids.ts"
import { contactLink, LogoFile, plainShop, type Shop, shopTexts } from "../Domain/Shop.ts"
import { Settings } from "../Settings.ts"
import { type Db, execute, oneValue, Reader, replaceRow, Tx, Writer } from "../Sql.ts"
import { defaultAccount } from "./Accounts.ts"

/** Changes of a shop: absent fields stay, null removes. */
export type ShopChange = { readonly [Part in (typeof shopTexts)[number]]?: string | null } & {
  readonly frameOrigins?: ReadonlyArray<string>
}

const changed = (before: Shop, change: ShopChange): Shop => {
  const textsOf = shopTexts.flatMap((part) => {
    const text = change[part] === undefined ? before[part] : change[part]
    return text === null || text === undefined ? [] : [[part, text] as const]
  })
  return { ...Object.fromEntries(textsOf), frameOrigins: change.frameOrigins ?? before.frameOrigins }
}

/** Changes how the checkout of an existing account looks. Returns the whole. Refuses a logo that cannot be shown. */
export const storeShopChange = Effect.fn("Shops.change")(function* (account: AccountId, change: ShopChange) {
  const writer = yield* Writer
  const { rates } = yield* Settings
  if (typeof change.currency === "string" && !rates.currencies.some((on) => on === change.currency)) {
    return yield* new ShopRefused({ part: "currency", rule: offText(change.currency) })
  }
  if (change.logo !== undefined && change.logo !== null) yield* readLogo(account, change.logo)
  return yield* writer.write(
    Effect.gen(function* () {
      const shop = changed(yield* shopOf(yield* Tx, account), change)
      yield* putShop(account, shop)
      yield* dropOtherImage(account, shop.logo)
      return shop
    })
  )
})

/** Bytes. */
const largest = 256 * 1024
/** Files that a refusal names. */
const mostNamed = 20

/** Neither follows a link nor waits for a pipe. */
const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

const isLogo = Schema.is(LogoFile)

// Logos are uploaded, or the operator puts them into `checkout.logo_folder`: those of the default account at its top, those of
// another one in a folder with its id as name. No account can use, or tell, another's.

/** Which logos there are, for a caller that named another one. */
const whatIsThere = (folder: string, within: string) =>
  Effect.promise(() => readdir(folder, { withFileTypes: true }).catch(() => [])).pipe(
    Effect.map((entries) => {
      const names = entries.filter((entry) => entry.isFile() && isLogo(entry.name)).map(({ name }) => name)
      const listed = [...names.sort().slice(0, mostNamed), ...(names.length > mostNamed ? ["…"] : [])]
      const there =
        listed.length === 0 ? "there is none yet" : `there ${names.length === 1 ? "is" : "are"} ${listed.join(", ")}`
      return new ShopRefused({ part: "logo", rule: `must be an image in the folder ${within}, where ${there}` })
    })
  )

const rule = (text: string) => new ShopRefused({ part: "logo", rule: text })

const contents = (file: FileHandle) =>
  Effect.gen(function* () {
    const stat = yield* Effect.promise(() => file.stat())
    if (!stat.isFile()) return yield* rule("must be a file")
    if (stat.size > largest) {
      return yield* rule(`must be at most ${largest / 1024} KiB, and has ${Math.ceil(stat.size / 1024)}`)
    }
    const { bytesRead, buffer } = yield* Effect.promise(() => file.read({ buffer: Buffer.alloc(stat.size) }))
    return buffer.subarray(0, bytesRead)
  })

/** The bytes of an account's logo, at most 256 KiB; or why it cannot be shown. */
export const readLogo = Effect.fn("logos.read")(function* (account: AccountId, name: typeof LogoFile.Type) {
  const uploaded = yield* logoImage(yield* Reader, account, name)
  if (uploaded !== undefined) return uploaded
  const { logoFolder } = (yield* Settings).checkout
  const [folder, within] =
    account === defaultAccount
      ? [logoFolder, "checkout.logo_folder"]
      : [join(logoFolder, account), `checkout.logo_folder/${account}`]
  const opened = Effect.tryPromise({
    try: () => open(join(folder, name), flags),
    catch: (error) => (Predicate.hasProperty(error, "code") ? String(error.code) : "unknown")
  })
  return yield* Effect.acquireUseRelease(opened, contents, (file) => Effect.promise(() => file.close())).pipe(
    Effect.catchIf(Predicate.isString, (code) =>
      code === "ENOENT" || code === "ENOTDIR"
        ? Effect.flatMap(whatIsThere(folder, within), Effect.fail)
        : rule(code === "ELOOP" ? "must be a file itself, not a symbolic link" : `must be readable for tilld (${code})`)
    )
  )
})

/** Bytes: with its text in base64, a form's body has room for it. */
export const largestImage = 40 * 1024

/** Pixels a side: a browser has four bytes in memory for each pixel, however small the file is. */
const longestSide = 1_000

/** No SVG: it could have scripts, and only the operator's are trusted. */
type ImageType = "png" | "jpg" | "webp"
type Size = readonly [type: ImageType, width: number, height: number]

/** Of a JPEG the first frame's header (ITU T.81, B.2.2), behind segments that say their length. */
const jpegSize = (bytes: Buffer): Size | undefined => {
  for (let at = 2; at + 9 <= bytes.length && bytes[at] === 0xff; ) {
    const marker = bytes.readUInt8(at + 1)
    // C4, C8 and CC are no frames. A marker may have more 0xff before it.
    if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker))
      return ["jpg", bytes.readUInt16BE(at + 7), bytes.readUInt16BE(at + 5)]
    at += marker === 0xff ? 1 : 2 + bytes.readUInt16BE(at + 2)
  }
  return undefined
}

/** What a picture's header says of it: PNG (RFC 2083), JPEG, WebP (RFC 9649). */
const sizeOf = (bytes: Buffer): Size | undefined => {
  const text = bytes.toString("latin1", 0, 30)
  if (text.length < 30) return undefined
  if (text.startsWith("\x89PNG\r\n\x1a\n") && text.startsWith("IHDR", 12))
    return ["png", bytes.readUInt32BE(16), bytes.readUInt32BE(20)]
  if (text.startsWith("\xff\xd8\xff")) return jpegSize(bytes)
  if (/^RIFF.{4}WEBPVP8X/s.test(text)) return ["webp", bytes.readUIntLE(24, 3) + 1, bytes.readUIntLE(27, 3) + 1]
  if (/^RIFF.{4}WEBPVP8L.{4}\x2f/s.test(text)) {
    const sides = bytes.readUInt32LE(21)
    return ["webp", (sides & 0x3fff) + 1, ((sides >>> 14) & 0x3fff) + 1]
  }
  if (!/^RIFF.{4}WEBPVP8 /s.test(text) || !text.startsWith("\x9d\x01\x2a", 23)) return undefined
  return ["webp", bytes.readUInt16LE(26) & 0x3fff, bytes.readUInt16LE(28) & 0x3fff]
}

/** The type of a picture by its header; left is why it cannot be a logo. */
export const imageTypeOf = (bytes: Buffer): Either.Either<ImageType, string> => {
  const [type, width = 0, height = 0] = sizeOf(bytes) ?? []
  if (type === undefined || bytes.length > largestImage || width === 0 || height === 0)
    return Either.left(`The picture must be a PNG, JPEG or WebP of at most ${largestImage / 1024} KiB.`)
  return Math.max(width, height) <= longestSide
    ? Either.right(type)
    : Either.left(`The picture has ${width} × ${height} pixels: make it at most ${longestSide} × ${longestSide}.`)
}

/** Stores a picture as the logo of an account's checkout. */
export const storeLogoImage = (account: AccountId, bytes: Buffer, type: ImageType) =>
  Effect.flatMap(Writer, (writer) =>
    writer.write(
      Effect.gen(function* () {
        const logo = `uploaded.${type}`
        yield* replaceRow("shop_images", ["account_id"], { account_id: account, name: logo, bytes })
        yield* putShop(account, { ...(yield* shopOf(yield* Tx, account)), logo })
      })
    )
  )

/** The picture of that name; undefined where there is none. */
export const logoImage = (db: Db, account: AccountId, name: string) =>
  oneValue<Buffer>(db, "SELECT bytes FROM shop_images WHERE account_id = ? AND name = ?", [account, name])

/** Forgets the picture of an account whose logo is another one now. */
export const dropOtherImage = (account: AccountId, logo: string | undefined) =>
  execute("DELETE FROM shop_images WHERE account_id = ? AND name <> ?", [account, logo ?? ""])

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

/** Replaces how it looks. */
export const putShop = (account: AccountId, shop: Shop) =>
  replaceRow("shops", ["account_id"], {
    account_id: account,
    ...Object.fromEntries(shopTexts.map((part) => [columnOf(part), shop[part] ?? null])),
    frame_origins: shop.frameOrigins.join(" ")
  })
