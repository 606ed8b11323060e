// Runs in browsers, without Effect: the platform's own functions are all it has.
// @effect-diagnostics globalTimers:off
/** Milliseconds for which a button says that it has copied. */
const shownFor = 2_000

// Only https and localhost have the clipboard.
for (const button of navigator.clipboard ? document.querySelectorAll<HTMLButtonElement>("button[data-copy]") : []) {
  // Behind the drawing.
  const words = button.lastChild ?? button
  const before = words.textContent
  button.hidden = false
  button.addEventListener("click", async () => {
    const copied = await navigator.clipboard.writeText(button.dataset.copy ?? "").then(
      () => true,
      () => false
    )
    words.textContent = copied ? " Copied" : " Not allowed"
    setTimeout(() => {
      words.textContent = before
    }, shownFor)
  })
}

/** Shows the buttons that copy a field's text, and says when they have. */
for (const button of document.querySelectorAll<HTMLButtonElement>("button[data-copies]")) {
  const id = button.dataset.copies ?? ""
  const field = document.getElementById(id)
  const said = document.querySelector(`[data-copied="${CSS.escape(id)}"]`)
  if (!(field instanceof HTMLInputElement)) continue
  button.hidden = false
  button.addEventListener("click", async () => {
    field.select()
    // Refused where the page is not served over https, or by the user: the text is selected, to be copied by hand.
    const copied = await navigator.clipboard?.writeText(field.value).then(
      () => true,
      () => false
    )
    if (said !== null) said.textContent = copied === true ? "Copied." : "Selected: copy it with the keyboard."
  })
}

export {}
