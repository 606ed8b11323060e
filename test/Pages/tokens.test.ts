/** The contrasts of the colours in `tokens.css`, computed from the file as WCAG 2.2 says (1.4.3 and 1.4.11). */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { contrast } from "../../src/lib/theme.ts"
import { root } from "../lib/processes.ts"

const css = readFileSync(join(root, "src/Pages/tokens.css"), "utf8")
const chart = readFileSync(join(root, "src/Portal/components/chart.css"), "utf8")

/** The colours of a rule by their names. */
const coloursIn = (rule = ""): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Array.from(rule.matchAll(/--([a-z-]+): (#[0-9a-f]{6});/g), ([, name = "", colour = ""]) => [name, colour])
  )

const [light = {}, dark = {}] = Array.from(css.matchAll(/:root \{([^}]*)\}/g), ([, rule]) => coloursIn(rule))
const schemes = { light, dark: { ...light, ...dark } }
const surfaces = ["background", "surface"]

/** Names of pairs whose contrast is less than `least`, in either scheme. */
const tooLow = (pairs: ReadonlyArray<readonly [string, string]>, least: number): ReadonlyArray<string> =>
  Object.entries(schemes).flatMap(([scheme, colours]) =>
    pairs.flatMap(([one, other]) => {
      const ratio = contrast(colours[one] ?? one, colours[other] ?? other)
      return ratio >= least ? [] : [`${scheme}: ${one} on ${other}: ${ratio.toFixed(2)}`]
    })
  )

const onSurfaces = (names: ReadonlyArray<string>) =>
  names.flatMap((name) => surfaces.map((surface) => [name, surface] as const))

it("every colour is in both schemes, and is compared", () => {
  const compared = ["background", "surface", "text", "muted", "accent", "on-accent", "good", "warning", "bad"]
  const tones = ["good-surface", "warning-surface", "bad-surface"]
  // Borders only separate: what a reader has to see has another colour.
  expect(Object.keys(light).sort()).toEqual([...compared, ...tones, "border"].sort())
  expect(Object.keys(dark).sort()).toEqual(Object.keys(light).sort())
})

it("text has 4.5 on what it is put on", () => {
  const tones = ["good", "warning", "bad"]
  const onTones = tones.flatMap((tone) => [[tone, `${tone}-surface`] as const, ["text", `${tone}-surface`] as const])
  const pairs = [...onSurfaces(["text", "muted", "accent", ...tones]), ...onTones, ["on-accent", "accent"] as const]
  expect(tooLow(pairs, 4.5)).toEqual([])
})

it("discs have 3 on both surfaces, and their figures on them", () => {
  const discs = Array.from(css.matchAll(/--disc: (#[0-9a-f]{6});/g), ([, colour = ""]) => colour)
  expect(discs).toHaveLength(11)
  expect(tooLow(onSurfaces(discs), 3)).toEqual([])
  expect(
    tooLow(
      discs.map((disc) => ["#ffffff", disc] as const),
      3
    )
  ).toEqual([])
})

it("charts have 3 on both surfaces, their grid and what a line is drawn over apart", () => {
  const rules = Array.from(chart.matchAll(/\.chart \.(\w+) \{([^}]*)\}/g)).filter(
    ([, name = ""]) => !/axis|area/.test(name)
  )
  const names = rules.flatMap(([, , rule = ""]) =>
    Array.from(rule.matchAll(/(?:fill|stroke): var\(--([a-z-]+)\)/g), ([, name = ""]) => name)
  )
  expect(new Set(names)).toEqual(new Set(["accent", "good", "muted", "bad"]))
  expect(tooLow(onSurfaces(names), 3)).toEqual([])
})
