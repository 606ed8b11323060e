// Runs in browsers, without Effect: the platform's own functions are all it has.
// @effect-diagnostics globalTimers:off
// @effect-diagnostics globalDate:off
/**
 * A page that shows what changes by itself reads itself again when the server tells of a change: no more often than it says,
 * only while it is in view, and never under somebody's hands. Then a notice offers it.
 */
const main = document.querySelector<HTMLElement>("main[data-changes]")
const offer = document.querySelector<HTMLElement>("[data-changed]")
const interval = Number(main?.dataset.interval)
const loadedAt = Date.now()

/** Whether somebody types, has chosen something, or is at something of the page with the keyboard. */
const isInUse = (): boolean => {
  const { activeElement } = document
  const isAtPart = activeElement instanceof HTMLElement && main?.contains(activeElement) === true
  if (isAtPart && activeElement.tabIndex >= 0) return true
  const fields = [...document.querySelectorAll<HTMLInputElement>("input:not([type=hidden])")]
  return fields.some(
    ({ checked, defaultChecked, defaultValue, value }) => value !== defaultValue || checked !== defaultChecked
  )
}

/** The page as it is now. What was done is said once. */
const pageAgain = (): string => {
  const url = new URL(location.href)
  for (const name of ["done", "ordered", "due", "refused"]) url.searchParams.delete(name)
  return url.href
}

const readAgain = () => {
  if (offer === null || !isInUse()) {
    location.replace(pageAgain())
    return
  }
  const { changed = "", show = "" } = offer.dataset
  const text = document.createElement("p")
  text.className = "notice neutral"
  const link = document.createElement("a")
  link.href = pageAgain()
  link.textContent = show
  text.append(`${changed} `, link)
  offer.replaceChildren(text)
}

if (main !== null) {
  let source: EventSource | undefined
  let isAwaited = false
  const follow = () => {
    source?.close()
    source = document.hidden ? undefined : new EventSource(main.dataset.changes ?? "")
    source?.addEventListener("message", () => {
      if (isAwaited) return
      isAwaited = true
      setTimeout(readAgain, Math.max(500, loadedAt + interval - Date.now()))
    })
  }
  document.addEventListener("visibilitychange", follow)
  follow()
}

export {}
