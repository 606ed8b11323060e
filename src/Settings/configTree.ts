/** A table of the configuration before it is decoded. */
export interface Tree {
  readonly [key: string]: unknown
}

/** The keys from the root to a value. A number is an array index. */
export type Path = ReadonlyArray<PropertyKey>

export const isTree = (value: unknown): value is Tree =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date)

/** Merges `over` into `under`: tables are merged, any other value replaces. */
export const merge = (under: Tree, over: Tree): Tree => {
  const joined = Object.entries(over).map(([key, value]) => {
    const below = Object.hasOwn(under, key) ? under[key] : undefined
    return [key, isTree(below) && isTree(value) ? merge(below, value) : value] as const
  })
  // Unlike an assignment this also makes "__proto__" a key, which is then refused like any unknown key.
  return Object.fromEntries([...Object.entries(under), ...joined])
}

/** A tree with one value at `path`. */
export const only = (path: ReadonlyArray<string>, value: unknown): Tree => {
  const [key = "", ...rest] = path
  return { [key]: rest.length === 0 ? value : only(rest, value) }
}

/** The value at `path`; undefined when there is none. */
export const at = (tree: unknown, path: Path): unknown =>
  path.reduce<unknown>(
    (value, key) =>
      (isTree(value) || Array.isArray(value)) && Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined,
    tree
  )

/** All strings of the tree, with their paths. */
export const texts = (value: unknown, path: Path = []): ReadonlyArray<readonly [path: Path, text: string]> => {
  if (typeof value === "string") return [[path, value]]
  if (Array.isArray(value)) return value.flatMap((item, i) => texts(item, [...path, i]))
  return isTree(value) ? Object.entries(value).flatMap(([key, item]) => texts(item, [...path, key])) : []
}

// A longer key is a mistake, and may be a secret that was pasted.
const keyText = (key: string) => (key.length <= 40 ? key : `(a key of ${key.length} characters)`)

/** A path in the notation of messages: `webhooks.allow_targets[1]`. */
export const pathText = (path: Path): string =>
  path.map((key, i) => (typeof key === "number" ? `[${key}]` : `${i === 0 ? "" : "."}${keyText(String(key))}`)).join("")
