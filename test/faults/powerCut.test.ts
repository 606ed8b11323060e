import { expect, it } from "@effect/vitest"
import { Dice } from "../sim/Dice.ts"
import { afterPowerCut } from "./powerCut.ts"

const write = (path: string, at: number, text: string) => `W ${at} ${text.length} ${path}\n${text}`
const sync = (path: string) => `S 0 0 ${path}\n`
const unlink = (path: string) => `U 0 0 ${path}\n`

/** Everything that the disk may show of a file, by many dice. */
const shown = (journal: ReadonlyArray<string>, path = "/d/a", before?: string) =>
  new Set(
    Array.from({ length: 200 }, (_, seed) =>
      afterPowerCut(
        Buffer.from(journal.join("")),
        (asked) => (asked === path && before !== undefined ? Buffer.from(before) : undefined),
        new Dice(String(seed))
      )
        .get(path)
        ?.toString()
    )
  )

it("a power cut leaves what was synced, and of the rest nothing, a part or all", () => {
  expect(shown([write("/d/a", 0, "one"), sync("/d/a")])).toEqual(new Set(["one"]))
  expect(shown([write("/d/a", 0, "one"), sync("/d/a"), write("/d/a", 3, "two")])).toEqual(new Set(["one", "onetwo"]))
  const long = "x".repeat(1024)
  expect(shown([write("/d/a", 0, long)], "/d/a", "")).toEqual(new Set(["", long.slice(0, 512), long]))
  // Later writes may be there without the earlier ones.
  expect(shown([write("/d/a", 0, "1"), write("/d/a", 1, "2")], "/d/a", "..")).toEqual(new Set(["..", "1.", ".2", "12"]))
  expect(shown(["T 1 0 /d/a\n", sync("/d/a"), write("/d/a", 1, "2").slice(0, -1)], "/d/a", "ab")).toEqual(
    new Set(["a"])
  )
})

it("a file that was removed may be back after a power cut, until its folder is synced", () => {
  expect(shown([unlink("/d/a")], "/d/a", "old")).toEqual(new Set(["old", undefined]))
  expect(shown([unlink("/d/a"), sync("/d")], "/d/a", "old")).toEqual(new Set([undefined]))
  expect(shown([unlink("/d/a"), write("/d/a", 0, "new"), sync("/d/a")], "/d/a", "old")).toEqual(new Set(["new"]))
})
