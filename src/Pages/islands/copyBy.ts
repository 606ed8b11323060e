// Runs in browsers, without Effect: the platform's own functions are all it has.
// @effect-diagnostics globalTimers:off
/** How long a button confirms the copy. Milliseconds. */
const shownFor = 2_000

export interface Copied {
  readonly text: string
  /** After it the text is shown, selected, if it cannot be copied. */
  readonly place: Element
  /** What the button says afterwards, or a note in its place. */
  readonly done: string
  readonly byHand: string
}

/**
 * Copies a text. Browsers inside apps refuse the clipboard, and on plain http there is none: then in the old way, by a selected
 * field, which stays where that fails too.
 */
const copy = async (button: HTMLButtonElement, { byHand, place, text }: Copied): Promise<boolean> => {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    const field = Object.assign(document.createElement("input"), { readOnly: true, value: text })
    field.setAttribute("aria-label", byHand)
    const shown = document.createElement(place.localName)
    shown.append(field)
    place.after(shown)
    field.select()
    if (document.execCommand("copy")) {
      shown.remove()
      button.focus()
      return true
    }
    field.id = button.id
    shown.append(` ${byHand}`)
    button.remove()
    return false
  }
}

/** Makes a button copy a text: that of every page. `then` is called when it was copied. */
export const copyBy = (button: HTMLButtonElement, copied: Copied, then?: () => void): void => {
  // Behind a drawing.
  const words = button.lastChild ?? button
  const before = words.textContent
  button.addEventListener("click", async () => {
    if (!(await copy(button, copied))) return
    words.textContent = copied.done
    button.classList.add("copied")
    then?.()
    setTimeout(() => {
      words.textContent = before
      button.classList.remove("copied")
    }, shownFor)
  })
}
