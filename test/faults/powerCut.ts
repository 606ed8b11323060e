import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { Effect } from "effect"
import { type Ending, killed } from "../crash/crashes.ts"
import { temporaryFolder } from "../lib/store.ts"
import type { Dice } from "../sim/Dice.ts"
import type { Disk } from "./disk.ts"

/** One line of the journal that `disk.c` writes. */
interface Change {
  readonly what: "W" | "T" | "S" | "U"
  /** Bytes: where it was written, or how long the file became. */
  readonly at: number
  readonly bytes: Buffer
  readonly path: string
}

const changesOf = (journal: Buffer): ReadonlyArray<Change> => {
  const changes: Array<Change> = []
  let from = 0
  while (true) {
    const end = journal.indexOf("\n", from)
    const [, what, at, length, path] = /^([WTSU]) (\d+) (\d+) (.*)$/.exec(journal.toString("utf8", from, end)) ?? []
    from = end + 1 + Number(length)
    // The last one may have been cut off.
    if (end < 0 || path === undefined || from > journal.length) return changes
    changes.push({ what: what as Change["what"], at: Number(at), bytes: journal.subarray(end + 1, from), path })
  }
}

/** A file from when it got its name until it lost it. */
interface Life {
  readonly before: Buffer
  readonly changes: Array<Change>
  /** So many of the changes are on the disk for certain. */
  synced: number
}

/** What a name has stood for, in order; undefined: for nothing. */
interface Name {
  readonly lives: Array<Life | undefined>
  /** The first of these that the disk may show. */
  from: number
}

/** Bytes that a disk writes at once. */
const sector = 512

const applied = (before: Buffer, changes: ReadonlyArray<Change>): Buffer => {
  const most = changes.reduce((most, { at, bytes }) => Math.max(most, at + bytes.length), before.length)
  const content = Buffer.alloc(most)
  before.copy(content)
  let length = before.length
  for (const { at, bytes, what } of changes) {
    if (what === "T") content.fill(0, at)
    else bytes.copy(content, at)
    length = what === "T" ? at : Math.max(length, at + bytes.length)
  }
  return content.subarray(0, length)
}

/** How much of what was not synced reached the disk: all, nothing, or each change in whole, in part or not at all. */
const survives = (dice: Dice) => {
  const luck = dice.weighted({ all: 1, none: 1, some: 3 })
  return (change: Change): Change | undefined => {
    const fate = luck === "some" ? dice.weighted({ all: 1, none: 1, torn: 1 }) : luck
    if (fate === "none") return undefined
    const sectors = Math.ceil(change.bytes.length / sector)
    const kept = fate === "torn" && change.what === "W" ? sector * dice.below(sectors + 1) : change.bytes.length
    return { ...change, bytes: change.bytes.subarray(0, kept) }
  }
}

/**
 * What a disk shows after a power cut: by path, the content; undefined where the file is not there.
 *
 * @param before the content of a path when the journal began
 */
export const afterPowerCut = (
  journal: Buffer,
  before: (path: string) => Buffer | undefined,
  dice: Dice
): ReadonlyMap<string, Buffer | undefined> => {
  const names = new Map<string, Name>()
  const nameOf = (path: string): Name => {
    const content = before(path)
    const name = names.get(path) ?? {
      lives: [content && { before: content, changes: [], synced: 0 }],
      from: 0
    }
    names.set(path, name)
    return name
  }
  for (const change of changesOf(journal)) {
    const { path, what } = change
    if (what === "S") for (const [other, name] of names) if (dirname(other) === path) name.from = name.lives.length - 1
    const name = nameOf(path)
    if (what === "U") {
      name.lives.push(undefined)
      continue
    }
    const life = name.lives.at(-1) ?? { before: Buffer.alloc(0), changes: [], synced: 0 }
    if (life !== name.lives.at(-1)) name.lives.push(life)
    if (what !== "S") life.changes.push(change)
    // A file that is new has its name with its content: ext4 and XFS write both.
    else [life.synced, name.from] = [life.changes.length, name.lives.length - 1]
  }
  const shown = ({ from, lives }: Name): Buffer | undefined => {
    const life = lives[dice.between(from, lives.length - 1)]
    const kept = survives(dice)
    return (
      life &&
      applied(
        life.before,
        life.changes.flatMap((change, i) => (i < life.synced ? change : (kept(change) ?? [])))
      )
    )
  }
  // The others were only synced, as folders are.
  const changed = [...names].filter(([, { lives }]) =>
    lives.some((life, i) => (life === undefined ? i > 0 : life.changes.length > 0))
  )
  return new Map(changed.map(([path, name]) => [path, shown(name)]))
}

/** Files that a power cut leaves nothing of. */
const isPassing = (name: string) => /-shm$|\.pid$|\.sock$/.test(name)

/**
 * The end of a life by a power cut: the process is gone, and the files hold what was synced, and of the rest what the dice
 * say. `cuts` counts those at which something that was written was not on the disk yet.
 */
export const makePowerCuts = (disk: Disk, dice: Dice) =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const [journal, copy] = [join(folder, "journal"), join(folder, "copy")]
    const rootsOf = ({ env, folder }: Parameters<Ending["after"]>[0]) => [folder, env["XDG_CACHE_HOME"] ?? folder]
    const ending: Ending = {
      ...killed,
      prepare: (installation) =>
        Effect.sync(() => {
          rmSync(copy, { recursive: true, force: true })
          rmSync(journal, { force: true })
          for (const [n, root] of rootsOf(installation).entries()) cpSync(root, join(copy, `${n}`), { recursive: true })
          return disk.env(rootsOf(installation), journal)
        }),
      after: (installation) =>
        Effect.sync(() => {
          const roots = rootsOf(installation)
          const before = (path: string) => {
            const n = roots.findIndex((root) => path.startsWith(`${root}/`))
            const file = n < 0 ? "" : join(copy, `${n}`, path.slice(roots[n]?.length))
            return statSync(file, { throwIfNoEntry: false })?.isFile() === true ? readFileSync(file) : undefined
          }
          if (!existsSync(journal)) return
          for (const [path, content] of afterPowerCut(readFileSync(journal), before, dice)) {
            if (content === undefined) rmSync(path, { force: true })
            else {
              mkdirSync(dirname(path), { recursive: true })
              writeFileSync(path, content)
            }
          }
          for (const name of readdirSync(installation.folder)) {
            if (isPassing(name)) rmSync(join(installation.folder, name), { force: true })
          }
        })
    }
    return ending
  })
