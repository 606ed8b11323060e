/** A table of the configuration before it is decoded. */
export interface Tree {
  readonly [key: string]: unknown
}

/** From the root to a value. A number is a place in an array. */
export type Path = ReadonlyArray<PropertyKey>

export const isTree = (value: unknown): value is Tree =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date)

/** `over` on `under`: tables are joined, anything else replaces what was there. */
export const merge = (under: Tree, over: Tree): Tree => {
  const joined = Object.entries(over).map(([key, value]) => {
    const below = Object.hasOwn(under, key) ? under[key] : undefined
    return [key, isTree(below) && isTree(value) ? merge(below, value) : value] as const
  })
  // Unlike an assignment this makes a key of "__proto__" too, which is then refused as any other unknown one.
  return Object.fromEntries([...Object.entries(under), ...joined])
}

/** The tree in which only `path` is there. */
export const only = (path: ReadonlyArray<string>, value: unknown): Tree => {
  const [key = "", ...rest] = path
  return { [key]: rest.length === 0 ? value : only(rest, value) }
}

/** What stands at `path`, undefined where nothing does. */
export const at = (tree: unknown, path: ReadonlyArray<string>): unknown =>
  path.reduce<unknown>((value, key) => (isTree(value) && Object.hasOwn(value, key) ? value[key] : undefined), tree)

/** Every text of the tree with its path. */
export const texts = (value: unknown, path: Path = []): ReadonlyArray<readonly [path: Path, text: string]> => {
  if (typeof value === "string") return [[path, value]]
  if (Array.isArray(value)) return value.flatMap((item, i) => texts(item, [...path, i]))
  return isTree(value) ? Object.entries(value).flatMap(([key, item]) => texts(item, [...path, key])) : []
}

// A key this long is none that anybody meant to write, and may be a secret.
const keyText = (key: string) => (key.length <= 40 ? key : `(a key of ${key.length} characters)`)

/** As people write it: `webhooks.allow_targets[1]`. */
export const pathText = (path: Path): string =>
  path.map((key, i) => (typeof key === "number" ? `[${key}]` : `${i === 0 ? "" : "."}${keyText(String(key))}`)).join("")
