import { cut } from "../Domain/wellFormed.ts"

const browsers: ReadonlyArray<readonly [name: string, token: RegExp]> = [
  // Each names those below it as well.
  ["Edge", /\bEdg(e|A|iOS)?\//],
  ["Opera", /\bOPR\//],
  ["Samsung Internet", /\bSamsungBrowser\//],
  ["Firefox", /\b(Firefox|FxiOS)\//],
  ["Chrome", /\b(Chrome|Chromium|CriOS|HeadlessChrome)\//],
  ["Safari", /\bSafari\//]
]

const systems: ReadonlyArray<readonly [name: string, token: RegExp]> = [
  ["iPhone", /\biPhone\b/],
  ["iPad", /\biPad\b/],
  ["Android", /\bAndroid\b/],
  ["Windows", /\bWindows\b/],
  ["ChromeOS", /\bCrOS\b/],
  ["macOS", /\bMac OS X\b|\bMacintosh\b/],
  ["Linux", /\bLinux\b/]
]

/** What a User-Agent header says, in words: `Firefox on Windows`. The start of the header where it names no browser. */
export const browserName = (userAgent: string): string => {
  const named = (names: typeof browsers) => names.find(([, token]) => token.test(userAgent))?.[0]
  const browser = named(browsers)
  const system = named(systems)
  if (browser === undefined) return cut(userAgent, 60) || "unknown"
  return system === undefined ? browser : `${browser} on ${system}`
}
