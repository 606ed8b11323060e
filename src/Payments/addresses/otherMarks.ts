/**
 * The index marks of other databases on this machine. The counter of a wallet belongs to the wallet: after a change of
 * `database.path`, the numbering continues beyond what was handed out from the former database.
 */
import { readdirSync } from "node:fs"
import { basename, join } from "node:path"
import { Array as Arr, Either, Order } from "effect"
import type { SettingsShape } from "../../Settings.ts"
import { type Mark, markAt, markFile } from "./IndexMark.ts"

/** How far another database has handed out addresses of a wallet. */
export interface OtherUse {
  /** The wallet's fingerprint. */
  readonly wallet: string
  /** The path of that database. */
  readonly database: string
  /** Its next index. */
  readonly next: number
}

const markName = /^numbering-[0-9a-f]{16}\.json$/

/** Unreadable marks are left out: the database's own mark, in the same folder, is refused then. */
const namesIn = (folder: string): ReadonlyArray<string> =>
  Either.getOrElse(
    Either.try(() => readdirSync(folder)),
    () => []
  ).filter((name) => markName.test(name))

/** The marks of all databases but the one at this path. */
const othersIn = (folders: ReadonlyArray<string>, path: string): ReadonlyArray<Mark> => {
  const own = basename(markFile({ path, markFolder: "" }))
  return folders.flatMap((folder) =>
    namesIn(folder)
      .filter((name) => name !== own)
      .flatMap((name) =>
        Either.getOrElse(
          Either.try(() => Arr.fromNullable(markAt(join(folder, name)))),
          () => []
        )
      )
  )
}

/**
 * The wallets that another database has used further than the one at this path: of each, the furthest use.
 *
 * @param known the next index of each wallet of this database, by fingerprint
 */
export const overtakenIn = (
  folders: ReadonlyArray<string>,
  path: SettingsShape["database"]["path"],
  known: Mark["wallets"]
): ReadonlyMap<string, OtherUse> => {
  const uses = othersIn(folders, path).flatMap(({ database, wallets }) =>
    Object.entries(wallets).map(([wallet, next]): OtherUse => ({ wallet, database, next }))
  )
  const ahead = uses.filter(({ next, wallet }) => next > (known[wallet] ?? 0))
  return new Map(Arr.sortWith(ahead, ({ next }) => next, Order.number).map((use) => [use.wallet, use]))
}
