import { Predicate } from "effect"

/** JSON that the same value always has: members sorted by name, those that are undefined left out, no white space. */
export const canonicalJson = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`
  if (!Predicate.isRecord(value)) return JSON.stringify(value)
  const names = Object.keys(value).sort()
  const members = names.filter((name) => value[name] !== undefined)
  return `{${members.map((name) => `${JSON.stringify(name)}:${canonicalJson(value[name])}`).join(",")}}`
}
