import axe from "axe-core"
import type { Page } from "playwright-core"

/** What axe-core finds wrong with a page in each colour scheme: the rule, and the elements. */
export const problemsOf = async (page: Page): Promise<ReadonlyArray<string>> => {
  const problems: Array<string> = []
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme })
    // Evaluated by the debugger: the page's policy allows no script of ours.
    await page.evaluate(axe.source)
    const { violations } = await page.evaluate(() => window.axe.run())
    for (const { id, nodes } of violations) {
      problems.push(`${colorScheme}: ${id}: ${nodes.map(({ html }) => html).join(" ")}`)
    }
  }
  return problems
}

declare global {
  interface Window {
    readonly axe: typeof axe
  }
}
