import { networkKey } from "../Domain/Chain.ts"
import { networks } from "./file.ts"
import { at, type Tree } from "./tree.ts"

/** Sections and keys that are decoded, and that no feature of this version reads. */
const unread: ReadonlyArray<string> = [
  "server.trusted_proxies",
  "admin",
  "limits",
  "portal",
  "telemetry",
  "retention",
  "alerts",
  ...networks.flatMap((network) => ["balance_interval", "policy"].map((key) => `chains.${networkKey(network)}.${key}`))
]

/** What was given in vain, of `given`: the file and the environment without defaults. */
export const unreadOf = (given: Tree): ReadonlyArray<string> =>
  unread.filter((key) => at(given, key.split(".")) !== undefined)
