/** Logos that were uploaded in the portal: small pictures, kept in the store. The shop's `logo` is then `uploaded.` and their type. */
import { Effect, Either } from "effect"
import type { AccountId } from "../Domain/Ids.ts"
import { type Db, execute, oneValue, Tx, Writer } from "../Sql.ts"
import { putShop, shopOf } from "./ShopsRepo.ts"

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
        const image = [account, logo, bytes] as const
        yield* execute("INSERT OR REPLACE INTO shop_images (account_id, name, bytes) VALUES (?, ?, ?)", image)
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
