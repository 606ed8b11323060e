/** The portal's script, a progressive enhancement: without it the pages do the same in another way. */
import { copyBy } from "../../Pages/islands/copyBy.ts"
import "./live.ts"
import "./localTimes.ts"
import "./look.ts"
import "./passkey.ts"

/** Long work goes on by itself: a form that asks for its next part is submitted as soon as it is shown. */
document.querySelector<HTMLFormElement>("form[data-continues]")?.requestSubmit()

/** Shows the buttons that copy. */
for (const button of document.querySelectorAll<HTMLButtonElement>("button[data-copy]")) {
  const byHand = "Selected: copy it with a long press or the keyboard."
  const place = button.parentElement ?? document.body
  button.hidden = false
  copyBy(button, { text: button.dataset.copy ?? "", place, done: " Copied", byHand })
}

/** Shows the checkbox that checks all others of its form's list. */
for (const all of document.querySelectorAll<HTMLInputElement>("input[data-chooses]")) {
  const others = document.querySelectorAll<HTMLInputElement>(
    `input[type="checkbox"][form="${CSS.escape(all.dataset.chooses ?? "")}"]`
  )
  all.hidden = false
  all.addEventListener("change", () => {
    for (const other of others) other.checked = all.checked
  })
}

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
