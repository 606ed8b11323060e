import axe from "axe-core"
import type { Page } from "playwright-core"

/** The narrowest phone, a common one, a tablet and a desk. */
const widths = [320, 360, 768, 1280]

/** What axe-core finds wrong with a page at each width and in each colour scheme: the rule, and the elements; and by how much it is too wide. */
export const problemsOf = async (page: Page): Promise<ReadonlyArray<string>> => {
  const problems: Array<string> = []
  // Evaluated by the debugger: the page's policy allows no script of ours.
  await page.evaluate(axe.source)
  for (const width of widths) {
    await page.setViewportSize({ width, height: 800 })
    const wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
    if (wider > 0) problems.push(`${width}: ${wider} pixels too wide`)
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme })
      const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }))
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
