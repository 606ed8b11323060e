import { at, type Tree } from "./configTree.ts"

/** Sections and keys that are decoded but not used by this version. */
const unread: ReadonlyArray<string> = ["telemetry", "alerts"]

/** The unused keys in `given`: the file and the environment, without defaults. */
export const unreadOf = (given: Tree): ReadonlyArray<string> =>
  unread.filter((key) => at(given, key.split(".")) !== undefined)
