/** Tells the shop's page, where the checkout is framed by one, what `tilld/checkout` waits for. */

/** The payment's status by what `<main>` shows. */
const statuses: Readonly<Record<string, string>> = {
  waiting: "pending",
  closing: "pending",
  unavailable: "pending",
  partPaid: "detecting",
  seen: "detecting",
  paid: "confirmed",
  expired: "expired",
  cancelled: "expired",
  failed: "failed"
}

export const isFramed = window.parent !== window

/** Only origins that the shop has named can frame the page, and they get nothing but a status. */
export const tellShop = ({ dataset: { state = "" } }: HTMLElement): void => {
  if (isFramed) window.parent.postMessage({ tilld: "checkout", status: statuses[state] }, "*")
}

/** The Escape key closes the checkout over a shop's page also while the checkout has the focus. */
export const closeByKey = (): void => {
  if (!isFramed) return
  document.addEventListener("keydown", ({ key }) => {
    if (key === "Escape") window.parent.postMessage({ tilld: "checkout", close: true }, "*")
  })
}
