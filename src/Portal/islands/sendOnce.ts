/** A form that is on its way is not sent again: of two clicks only the first one's answer would be seen by nobody. */
const sent = new WeakSet<EventTarget>()

addEventListener("submit", (event) => {
  // Not sent: a script stopped it, to fill in what is missing.
  if (event.defaultPrevented || !(event.target instanceof HTMLFormElement) || event.target.method !== "post") return
  if (sent.has(event.target)) event.preventDefault()
  sent.add(event.target)
})

// Back on a page that the browser has kept, its forms may be sent once more.
addEventListener("pageshow", ({ persisted }) => {
  if (!persisted) return
  for (const form of document.forms) sent.delete(form)
})

export {}
