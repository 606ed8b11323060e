/** Lets screen readers hear a text once, in the page's live region. */
export const announce = (text: string): void => {
  const region = document.getElementById("announcement")
  if (region !== null) region.textContent = text
}
