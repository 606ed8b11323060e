import axe from "axe-core"
import type { Page } from "playwright-core"

/** The narrowest phone, a common one, a tablet and a desk. */
const widths = [320, 360, 768, 1280]
/** Where axe-core looks: every page has one layout for narrow windows and one for wide ones. */
const layouts = [320, 1280]
/** Its rules about colours: a dark scheme changes nothing else. */
const colourRules = ["color-contrast", "link-in-text-block"]

/**
 * What axe-core finds wrong with a page in each layout and colour scheme: the rule, and the elements; and at which width it is
 * too wide, and by how much.
 */
export const problemsOf = async (page: Page): Promise<ReadonlyArray<string>> => {
  const problems: Array<string> = []
  // Evaluated by the debugger: the page's policy allows no script of ours.
  await page.evaluate(axe.source)
  for (const width of widths) {
    await page.setViewportSize({ width, height: 800 })
    const wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
    if (wider > 0) problems.push(`${width}: ${wider} pixels too wide`)
    if (!layouts.includes(width)) continue
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme })
      const { violations } = await page.evaluate(
        (rules) => window.axe.run(document, { resultTypes: ["violations"], ...rules }),
        colorScheme === "dark" ? { runOnly: { type: "rule" as const, values: colourRules } } : {}
      )
      for (const { id, nodes } of violations) {
        problems.push(`${width} ${colorScheme}: ${id}: ${nodes.map(({ html }) => html).join(" ")}`)
      }
    }
  }
  return problems
}

declare global {
  interface Window {
    readonly axe: typeof axe
  }
}
