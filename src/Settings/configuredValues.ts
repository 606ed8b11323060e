/** The configuration as one value for each key, so that two can be compared and a difference be told. */
import { createHash } from "node:crypto"
import { Duration } from "effect"
import { isTree, type Path, pathText, type Tree } from "./configTree.ts"

/** The values by the keys of the file, with defaults and presets. None is a secret: of these there are digests. */
export type ConfiguredValues = Readonly<Record<string, string>>

const digestOf = (secret: string): string => `sha256 ${createHash("sha256").update(secret).digest("hex").slice(0, 12)}`

/** Providers and receivers have keys in their URLs: all but the origin is a secret. */
const urlText = (url: string): string => {
  const { href, origin } = new URL(url)
  return href === `${origin}/` ? origin : `${origin}/… (${digestOf(href)})`
}

const textOf = (path: Path, value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map((item) => textOf(path, item)).join(", ")}]`
  if (typeof value !== "string") return JSON.stringify(value)
  if (path[0] === "wallets") return digestOf(value)
  if (/^\d+ millis$/.test(value)) return Duration.format(value as `${number} millis`)
  return URL.canParse(value) && /^https?:/i.test(value) ? urlText(value) : JSON.stringify(value)
}

/** Whether only a restart takes a key: of what stays open while tilld takes a changed configuration. */
export const needsRestart = (key: string): boolean =>
  /^(server\.(host|port|trusted_proxies)$|admin\.|database\.|node\.)/.test(key)

/** @param tree the whole configuration, as the file would have it */
export const valuesOf = (tree: Tree, under: Path = []): ConfiguredValues =>
  Object.assign(
    {},
    ...Object.entries(tree).map(([key, value]) => {
      const path = [...under, key]
      return isTree(value) ? valuesOf(value, path) : { [pathText(path)]: textOf(path, value) }
    })
  )

/** The keys whose values differ, sorted. */
export const differing = (one: ConfiguredValues, other: ConfiguredValues): ReadonlyArray<string> =>
  [...new Set([...Object.keys(one), ...Object.keys(other)])].filter((key) => one[key] !== other[key]).sort()
