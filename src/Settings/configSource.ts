import { readFileSync } from "node:fs"
import { Either, SchemaAST } from "effect"
import { parse, TomlError } from "smol-toml"
import { closest } from "../lib/suggestion.ts"
import { File } from "./configSchema.ts"
import { merge, only, type Path, type Tree } from "./configTree.ts"
import type { SettingsProblem } from "./SettingsProblem.ts"

/** The source of the configuration: a file and the process's environment. */
export interface SettingsSource {
  readonly path: string
  readonly env: Readonly<Record<string, string | undefined>>
}

/** A key with the environment variable that sets it. */
export interface Override {
  readonly variable: string
  readonly path: ReadonlyArray<string>
  readonly value: unknown
}

const prefix = "TILLD_"
const notKeys = new Set(["TILLD_CONFIG", "TILLD_SOCKET", "TILLD_MASTER_KEY", "TILLD_API_KEY"])

/** The keys of a section with their schemas, as the file has them; none for any other schema. */
const entriesOf = (node: SchemaAST.AST | undefined): ReadonlyArray<SchemaAST.PropertySignature> => {
  const written = node !== undefined && SchemaAST.isTransformation(node) ? node.from : node
  return written !== undefined && SchemaAST.isTypeLiteral(written) ? written.propertySignatures : []
}

/** The schema at `path` of the configuration file; undefined when there is no such key. */
export const nodeAt = (path: Path): SchemaAST.AST | undefined =>
  path.reduce<SchemaAST.AST | undefined>(
    (node, key) =>
      typeof key === "number" ? node && itemOf(node) : entriesOf(node).find(({ name }) => name === key)?.type,
    File.ast
  )

const itemOf = (list: SchemaAST.AST): SchemaAST.AST | undefined =>
  SchemaAST.isRefinement(list) ? itemOf(list.from) : SchemaAST.isTupleType(list) ? list.rest[0]?.type : undefined

/** The keys of a section. */
export const keysOf = (node: SchemaAST.AST | undefined): ReadonlyArray<string> =>
  entriesOf(node).map(({ name }) => String(name))

const variableOf = (path: ReadonlyArray<string>) => prefix + path.join("__").toUpperCase()

/** All environment variables, with the paths of the keys that they set. Sections have none. */
const variables = new Map<string, ReadonlyArray<string>>()
const collect = (path: ReadonlyArray<string>): void => {
  const keys = keysOf(nodeAt(path))
  if (keys.length === 0) variables.set(variableOf(path), path)
  for (const key of keys) collect([...path, key])
}
collect([])

/**
 * Reads a variable as text if the key is one, else as a TOML value. Invalid TOML stays text, which the decoder refuses.
 */
const valueOf = (path: ReadonlyArray<string>, text: string): unknown => {
  const node = nodeAt(path)
  if (node !== undefined && SchemaAST.isStringKeyword(SchemaAST.encodedAST(node))) return text
  return Either.try(() => parse(`value = ${text}`)).pipe(
    Either.filterOrLeft(
      (tree) => Object.keys(tree).length === 1,
      () => undefined
    ),
    Either.match({ onLeft: () => text, onRight: ({ value }) => value })
  )
}

/** The keys that the environment sets, and problems with variables that have tilld's prefix and set no key. */
export const readOverrides = (env: SettingsSource["env"]) => {
  const overrides: Array<Override> = []
  const problems: Array<SettingsProblem> = []
  for (const [variable, text] of Object.entries(env)) {
    if (text === undefined || !variable.startsWith(prefix) || notKeys.has(variable)) continue
    const path = variables.get(variable)
    if (path !== undefined) overrides.push({ variable, path, value: valueOf(path, text) })
    else {
      const meant = closest(variable, [...variables.keys(), ...notKeys])
      const remedy = meant === undefined ? "unset it: this prefix is tilld's own" : `did you mean ${meant}?`
      problems.push({ at: variable, message: `sets no key of the configuration; ${remedy}` })
    }
  }
  return { overrides, problems }
}

/** The overrides as a tree, in the form of the file. */
export const treeOf = (overrides: ReadonlyArray<Override>): Tree =>
  overrides.map(({ path, value }) => only(path, value)).reduce(merge, {})

const unreadable = (path: string, cause: unknown): string => {
  const code = cause instanceof Error && "code" in cause ? cause.code : undefined
  if (code === "ENOENT") {
    return `there is no file ${path}; copy config/tilld.example.toml there, or name another with --config or TILLD_CONFIG`
  }
  return `the file cannot be read (${code}); check its permissions, or name a socket of the daemon with TILLD_SOCKET`
}

/** The file's text, or why it cannot be read. */
export const readText = (path: string): Either.Either<string, string> =>
  Either.try({ try: () => readFileSync(path, "utf8"), catch: (cause) => unreadable(path, cause) })

// Only the first line of the parser's message: the rest quotes lines of the file, which may contain a secret.
const syntaxMessage = (error: TomlError) => {
  const [first = ""] = error.message.split("\n")
  return `line ${error.line}, column ${error.column}: ${first.replace("Invalid TOML document: ", "")}`
}

export const parseText = (text: string): Either.Either<Tree, string> =>
  Either.try({
    try: () => parse(text),
    catch: (cause) => {
      if (cause instanceof TomlError) return syntaxMessage(cause)
      throw cause
    }
  })
