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
