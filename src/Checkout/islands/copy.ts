// Runs in browsers, without Effect: the platform's own functions are all it has.
// @effect-diagnostics globalTimers:off
import { announce } from "./announce.ts"

/** How long a button confirms the copy. Milliseconds. */
const shownFor = 2_000

/** Only https and localhost have the clipboard: elsewhere a hidden field is copied, as browsers always could. */
const copy = async (text: string): Promise<void> => {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text)
  const field = document.createElement("textarea")
  field.value = text
  field.className = "visually-hidden"
  document.body.append(field)
  field.select()
  document.execCommand("copy")
  field.remove()
}

/** Adds a button to everything that can be copied. */
export const addCopyButtons = (main: HTMLElement): void => {
  const { copied = "" } = main.dataset
  for (const place of main.querySelectorAll<HTMLElement>("[data-copy]")) {
    const { copy: text = "", copyId = "", copyLabel = "" } = place.dataset
    const button = document.createElement("button")
    button.type = "button"
    button.id = copyId
    button.className = "copy"
    button.textContent = copyLabel
    button.addEventListener("click", () => {
      void copy(text).then(() => {
        button.textContent = copied
        button.classList.add("copied")
        announce(copied)
        setTimeout(() => {
          button.textContent = copyLabel
          button.classList.remove("copied")
        }, shownFor)
      })
    })
    ;(place.querySelector("dd") ?? place).append(button)
  }
}
