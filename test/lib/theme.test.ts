import { expect, it } from "@effect/vitest"
import { contrast, themeOf, themesOf } from "../../src/lib/theme.ts"

const light = "#f6f7f9"
const dark = "#181c22"

const colours = (css: string) => css.match(/#[0-9a-f]{6}/g) ?? []

it("a contrast is that of WCAG", () => {
  expect(contrast("#000000", "#ffffff")).toBe(21)
  expect(contrast("#777777", "#ffffff")).toBeCloseTo(4.48, 2)
  expect(contrast("#1f5fd1", "#1f5fd1")).toBe(1)
})

it("every accent is readable on both pages, and text on the accent, too", () => {
  const channels = ["00", "33", "80", "cc", "ff"]
  for (const red of channels) {
    for (const green of channels) {
      for (const blue of channels) {
        const accent = `#${red}${green}${blue}`
        const [onLight = "", textLight = "", onDark = "", textDark = ""] = colours(themeOf(accent))
        expect(contrast(onLight, light), accent).toBeGreaterThanOrEqual(4.5)
        expect(contrast(onDark, dark), accent).toBeGreaterThanOrEqual(4.5)
        expect(contrast(textLight, onLight), accent).toBeGreaterThanOrEqual(4.5)
        expect(contrast(textDark, onDark), accent).toBeGreaterThanOrEqual(4.5)
      }
    }
  }
})

it("a readable accent stays unchanged", () => {
  expect(themeOf("#1f5fd1")).toMatch(/^:root\{--accent:#1f5fd1;--on-accent:#ffffff\}@media/)
})

it("a preview has the colours of the checkout's stylesheet", () => {
  for (const accent of ["#1f5fd1", "#102030", "#ffee88"]) {
    const { dark, light } = themesOf(accent)
    expect(colours(themeOf(accent))).toEqual([light.accent, light.onAccent, dark.accent, dark.onAccent])
  }
})
