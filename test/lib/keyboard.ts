import type { Page } from "playwright-core"

/** The name of what has the focus, as assistive technology says it: its label, or its text. */
const focused = (page: Page): Promise<string> =>
  page.evaluate(() => {
    const element = document.activeElement
    if (!(element instanceof HTMLElement)) return ""
    const labels =
      element instanceof HTMLInputElement ? [...(element.labels ?? [])].map((label) => label.textContent) : []
    return [element.getAttribute("aria-label"), ...labels, element.textContent].filter(Boolean).join(" ").trim()
  })

/** A person without a mouse, who counts the keys. */
export const keyboardOf = (page: Page) => {
  let count = 0
  const press = async (key: string) => {
    count += 1
    await page.keyboard.press(key)
  }
  /** Goes on to what has this name. */
  const to = async (name: RegExp | string) => {
    const seen: Array<string> = []
    for (let n = 0; n < 60; n++) {
      await press("Tab")
      const found = await focused(page)
      seen.push(found)
      if (typeof name === "string" ? found === name : name.test(found)) return
    }
    throw new Error(`the keyboard does not come to ${name}, but to ${seen.join(" | ")}`)
  }
  /** Presses what has the focus, which leads to another page. */
  const follow = async (key = "Enter") => {
    const there = page.waitForEvent("load")
    await press(key)
    await there
    // It takes the focus with the first frame.
    if ((await page.locator("[autofocus]").count()) > 0) await page.locator("[autofocus]:focus").waitFor()
  }
  return {
    press,
    to,
    follow,
    open: async (name: RegExp | string) => {
      await to(name)
      await follow()
    },
    /** Past the header and the sections. */
    skip: async () => {
      await press("Tab")
      await press("Enter")
    },
    /** What is pasted is one key. */
    paste: (text: string) => {
      count += 1
      return page.keyboard.insertText(text)
    },
    get count() {
      return count
    }
  }
}
