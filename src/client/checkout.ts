// The package entry `tilld/checkout`: a script for a shop's own pages. It opens a payment's checkout over the page instead of
// leaving it, and needs nothing else. The shop's origin must be one that `tilld accounts shop --frame-origin` names; without
// the script the same link leads to the checkout.

/** What a checkout reports: the status that its payment has. */
export type CheckoutStatus = "pending" | "detecting" | "confirmed" | "expired" | "failed"

export interface CheckoutOptions {
  /** Called once, when the payment is confirmed. For the page only: goods go out by webhook. */
  readonly onPaid?: () => void
  /** Called with what the page shows, such as `waiting`, `partPaid`, `seen` or `paid`: it may get further ones. */
  readonly onState?: (state: string) => void
  /** Called when the checkout has been closed, with the last status that it reported. */
  readonly onClose?: (status: CheckoutStatus | undefined) => void
  /** What screen readers call the checkout. Default: "Payment". */
  readonly title?: string
  /** What screen readers call the button that closes it. Default: "Close". */
  readonly closeLabel?: string
}

const frameStyle = { border: "0", width: "100%", height: "100%", background: "Canvas" }
const closeStyle = {
  position: "absolute",
  top: "4px",
  right: "4px",
  width: "44px",
  height: "44px",
  font: "24px sans-serif"
}
// System colours, as of what it lies on: the shop's own text may have the colour of the checkout's ground.
const bareStyle = { border: "0", borderRadius: "22px", background: "Canvas", color: "CanvasText", cursor: "pointer" }
const dialogStyle = {
  ...{ padding: "0", border: "0", borderRadius: "12px", margin: "auto", overflow: "hidden" },
  ...{ width: "min(480px, 100vw)", height: "min(920px, 100dvh)", maxWidth: "100vw", maxHeight: "100dvh" }
}

/**
 * Opens a checkout over the page.
 *
 * @param url the `checkoutUrl` of a payment
 * @returns closes it
 */
export const openCheckout = (url: string, options: CheckoutOptions = {}): (() => void) => {
  const { origin } = new URL(url)
  const dialog = document.createElement("dialog")
  const frame = document.createElement("iframe")
  let status: CheckoutStatus | undefined
  frame.src = url
  frame.title = options.title ?? "Payment"
  frame.allow = "clipboard-write"
  Object.assign(frame.style, frameStyle)
  Object.assign(dialog.style, dialogStyle)
  const close = document.createElement("button")
  close.type = "button"
  close.textContent = "×"
  close.ariaLabel = options.closeLabel ?? "Close"
  Object.assign(close.style, closeStyle, bareStyle)
  close.addEventListener("click", () => dialog.close())
  dialog.append(frame, close)

  const onMessage = ({ data, origin: from, source }: MessageEvent) => {
    if (from !== origin || source !== frame.contentWindow || data?.tilld !== "checkout") return
    if (data.close === true) return dialog.close()
    if (typeof data.state === "string") options.onState?.(data.state)
    const wasPaid = status === "confirmed"
    status = data.status
    if (status === "confirmed" && !wasPaid) options.onPaid?.()
  }
  window.addEventListener("message", onMessage)
  dialog.addEventListener("close", () => {
    window.removeEventListener("message", onMessage)
    dialog.remove()
    options.onClose?.(status)
  })
  // A click beside the checkout hits the dialog itself.
  dialog.addEventListener("click", ({ target }) => {
    if (target === dialog) dialog.close()
  })
  document.body.append(dialog)
  dialog.showModal()
  return () => dialog.close()
}

/** Makes every link `<a href="CHECKOUT_URL" data-tilld-checkout>` within `root` open its checkout over the page. */
export const checkoutButtons = (root: ParentNode = document, options: CheckoutOptions = {}): void => {
  for (const link of root.querySelectorAll<HTMLAnchorElement>("a[data-tilld-checkout]")) {
    link.addEventListener("click", (event) => {
      // A new tab or window, as the customer wishes.
      if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return
      event.preventDefault()
      openCheckout(link.href, options)
    })
  }
}
