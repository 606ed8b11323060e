import { readdirSync, readFileSync } from "node:fs"
import { SourceMap } from "node:module"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

interface Profile {
  readonly nodes: ReadonlyArray<{
    readonly id: number
    readonly callFrame: {
      readonly functionName: string
      readonly url: string
      readonly lineNumber: number
      readonly columnNumber: number
    }
  }>
  readonly samples: ReadonlyArray<number>
  readonly timeDeltas: ReadonlyArray<number>
  /** Microseconds of the clock of `process.hrtime`. */
  readonly startTime: number
}

/** The options with which Node writes a profile of its processor time into a folder when it ends. */
export const profiled = (folder: string): ReadonlyArray<string> => [
  "--cpu-prof",
  `--cpu-prof-dir=${folder}`,
  "--cpu-prof-interval=250"
]

/** The source file of a place in a bundle. */
const sourceOf = (() => {
  const maps = new Map<string, SourceMap | undefined>()
  const mapOf = (file: string) => {
    if (!maps.has(file)) {
      const name = /\/\/# sourceMappingURL=(\S+)\s*$/.exec(readFileSync(file, "utf8"))?.[1]
      const map =
        name === undefined ? undefined : new SourceMap(JSON.parse(readFileSync(join(dirname(file), name), "utf8")))
      maps.set(file, map)
    }
    return maps.get(file)
  }
  return (url: string, line: number, column: number): string => {
    if (!url.startsWith("file:")) return url
    const entry = mapOf(fileURLToPath(url))?.findEntry(line, column)
    return entry !== undefined && "originalSource" in entry ? entry.originalSource : url
  }
})()

/**
 * Microseconds that the main thread of a profiled process spent in each part, between two moments of the clock of
 * `process.hrtime`, in microseconds.
 *
 * @param partOf the part of a function, by its name and its source file
 */
export const timesIn = <Part extends string>(
  folder: string,
  [from, to]: readonly [number, number],
  partOf: (name: string, file: string) => Part
): Map<Part, number> => {
  // The threads of a process write one each; the name ends with the thread's number, and that of the file.
  const [file] = readdirSync(folder).filter((name) => /\.0\.\d+\.cpuprofile$/.test(name))
  if (file === undefined) throw new Error(`there is no profile in ${folder}`)
  const profile: Profile = JSON.parse(readFileSync(join(folder, file), "utf8"))
  const parts = new Map(
    profile.nodes.map(({ callFrame: { columnNumber, functionName, lineNumber, url }, id }) => [
      id,
      partOf(functionName, sourceOf(url, lineNumber, columnNumber))
    ])
  )
  const spent = new Map<Part, number>()
  let at = profile.startTime
  for (const [i, delta] of profile.timeDeltas.entries()) {
    at += delta
    const part = parts.get(profile.samples[i] ?? 0)
    if (part !== undefined && at >= from && at <= to) spent.set(part, (spent.get(part) ?? 0) + delta)
  }
  return spent
}
