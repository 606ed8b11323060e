import { Either, ParseResult, Schema, SchemaAST } from "effect"
import { closest } from "../Domain/suggestion.ts"
import { File } from "./configSchema.ts"
import { keysOf, nodeAt } from "./configSource.ts"
import { at, type Path, pathText, type Tree } from "./configTree.ts"
import type { Fault } from "./SettingsProblem.ts"
import { show } from "./valueSchemas.ts"

const decoded = Schema.decodeUnknownEither(File, { errors: "all", onExcessProperty: "error" })

const unknownKey = (path: Path): string => {
  const section = path.slice(0, -1)
  const key = String(path.at(-1))
  const known = keysOf(nodeAt(section))
  const meant = closest(key, known)
  if (meant !== undefined) return `is not a key of tilld; did you mean "${meant}"?`
  if (section.at(-1) === "tokens" && (key === "ETH" || key === "MATIC")) {
    return "is the chain's own coin, which has no contract and needs no configuration; remove this section"
  }
  return `is not a key of tilld; ${section.length === 0 ? "the file" : `[${pathText(section)}]`} takes ${known.join(", ")}`
}

const missingKey = (path: Path): string => {
  const node = nodeAt(path)
  const rule = node === undefined ? undefined : SchemaAST.getDescriptionAnnotation(node)
  const needed = rule?._tag === "Some" ? `is missing; it ${rule.value}` : "is missing"
  return path[0] === "chains" && path.length > 3 && !path.includes("policy")
    ? `${needed} (only public networks have presets)`
    : needed
}

const messageOf = ({ _tag, message, path }: ParseResult.ArrayFormatterIssue, tree: Tree): string => {
  if (_tag === "Unexpected") return unknownKey(path)
  if (_tag === "Missing") return missingKey(path)
  return keysOf(nodeAt(path)).length === 0 ? message : `must be a section; found ${show(at(tree, path))}`
}

/** Decodes `tree`, which has the presets of its chains. Fails with all problems, one per key. */
export const decode = (tree: Tree): Either.Either<File, ReadonlyArray<Fault>> =>
  Either.mapLeft(decoded(tree), (error) => {
    const faults = new Map<string, Fault>()
    for (const issue of ParseResult.ArrayFormatter.formatErrorSync(error)) {
      const place = pathText(issue.path)
      if (!faults.has(place)) faults.set(place, { path: issue.path, message: messageOf(issue, tree) })
    }
    return [...faults.values()]
  })
