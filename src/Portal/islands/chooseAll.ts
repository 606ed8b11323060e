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

export {}
