import { at, type Tree } from "./tree.ts"

/** Sections and keys that are decoded, and that no feature of this version reads. */
const unread: ReadonlyArray<string> = ["portal", "telemetry", "retention.requests", "alerts"]

/** What was given in vain, of `given`: the file and the environment without defaults. */
export const unreadOf = (given: Tree): ReadonlyArray<string> =>
  unread.filter((key) => at(given, key.split(".")) !== undefined)
