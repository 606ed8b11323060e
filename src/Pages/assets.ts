/**
 * The scripts and stylesheets of pages, which the build leaves in the folder `assets` beside the chunks. Each is read once,
 * compressed once, and has its hash in its name, so that browsers keep it for ever. `Pages.ts` serves them.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { brotliCompressSync, constants } from "node:zlib"
import type { HttpReply } from "../Http/HttpReply.ts"
import type { PageRequest } from "../Http/PageHandler.ts"

/** Whether an Accept-Encoding header has Brotli in its list. */
export const takesBrotli = (acceptEncoding: string): boolean => /(^|,)\s*br\s*(,|$)/.test(acceptEncoding)

/** A tenth of a millisecond for a page, to a third of its size. */
const fast = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }

/** Less is not worth a header. */
const leastBytes = 1_024

/** A page as the client takes it. A page that shows what the request says beside a secret must not be compressed: its length would tell. */
export const compressed = ({ headers }: Pick<PageRequest, "headers">, reply: HttpReply): HttpReply => {
  const isHtml = reply.headers["content-type"]?.startsWith("text/html") === true
  if (!isHtml || reply.rest !== undefined) return reply
  const bytes = reply.bytes === undefined ? Buffer.from(reply.text) : Buffer.concat(reply.bytes)
  if (bytes.length < leastBytes) return reply
  const { etag } = reply.headers
  const varied = { ...reply, headers: { ...reply.headers, vary: "accept-encoding" } }
  if (!takesBrotli(String(headers["accept-encoding"] ?? ""))) return varied
  return {
    ...varied,
    headers: {
      ...varied.headers,
      // Of other bytes (RFC 9110, 8.8.3.3).
      ...(etag === undefined ? {} : { etag: etag.replace(/"$/, '.br"') }),
      "content-encoding": "br"
    },
    text: "",
    bytes: [brotliCompressSync(bytes, fast)]
  }
}

/** Where a page finds its script and its stylesheet: paths from the origin. */
export interface AssetUrls {
  readonly script: string
  readonly style: string
}

/** The rooms that have pages. */
export type AssetRoom = "checkout" | "portal"

interface Asset {
  readonly contentType: string
  readonly bytes: Buffer
  readonly brotli: Buffer
}

const contentTypes: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8"
}

export const assetsPath = "/assets/"

/** Beside the bundle's chunks; run from the sources, in what the last build made. */
export const assetsFolder = (): string => {
  const beside = fileURLToPath(new URL("../assets/", import.meta.url))
  if (existsSync(beside)) return beside
  const dist = fileURLToPath(new URL("../../dist/", import.meta.url))
  if (!existsSync(`${dist}.inputs`)) throw new Error("The pages' scripts are missing: build again with npm run build.")
  return `${dist}builds/${readFileSync(`${dist}.inputs`, "utf8")}/assets`
}

export interface Assets {
  readonly urls: (room: AssetRoom) => AssetUrls
  /** The script that shop plugins load: a path from the origin. */
  readonly modal: () => string
  /** The asset of a path below `/assets/`; undefined where there is none. */
  readonly reply: (path: string, acceptEncoding: string | undefined) => HttpReply | undefined
}

const load = (): Assets => {
  const from = assetsFolder()
  const assets = new Map<string, Asset>()
  const paths = new Map<string, string>()
  for (const name of readdirSync(from)) {
    const [, room, kind = ""] = /^(\w+)-\w+\.(js|css)$/.exec(name) ?? []
    const contentType = contentTypes[kind]
    if (contentType === undefined) continue
    const bytes = readFileSync(`${from}/${name}`)
    paths.set(`${room}.${kind}`, `${assetsPath}${name}`)
    assets.set(`${assetsPath}${name}`, { contentType, bytes, brotli: brotliCompressSync(bytes) })
  }
  const pathOf = (name: string): string => {
    const path = paths.get(name)
    if (path === undefined) throw new Error(`The asset ${name} is missing: build again with npm run build.`)
    return path
  }
  return {
    modal: () => pathOf("modal.js"),
    urls: (room) => ({ script: pathOf(`${room}.js`), style: pathOf(`${room}.css`) }),
    reply: (path, acceptEncoding = "") => {
      const asset = assets.get(path)
      if (asset === undefined) return undefined
      const isBrotli = takesBrotli(acceptEncoding)
      return {
        status: 200,
        headers: {
          "content-type": asset.contentType,
          "cache-control": "public, max-age=31536000, immutable",
          "x-content-type-options": "nosniff",
          vary: "Accept-Encoding",
          ...(isBrotli ? { "content-encoding": "br" } : {})
        },
        text: "",
        bytes: [isBrotli ? asset.brotli : asset.bytes]
      }
    }
  }
}

let loaded: Assets | undefined

/** Read with the first page that is asked for. Throws when the build left none. */
export const assets = (): Assets => {
  loaded ??= load()
  return loaded
}
