import { extname } from "node:path"
import type { HttpReply } from "../Http/HttpReply.ts"

const imageTypes: Readonly<Record<string, string>> = {
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".webp": "image/webp",
  ".jpg": "image/jpeg",
  ".jpeg": "image/jpeg"
}

/** Not permanently: the shop may change it. */
export const lookHeaders = {
  "cache-control": "private, max-age=300",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer"
}

/** An SVG that is opened by itself could have scripts. */
const inert = { "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox" }

/** The logo of a checkout. `name`: that of its file. */
export const logoReply = (name: string, bytes: Buffer): HttpReply => ({
  status: 200,
  headers: { ...lookHeaders, ...inert, "content-type": imageTypes[extname(name).toLowerCase()] ?? "" },
  text: "",
  bytes: [bytes]
})
