/**
 * `/modal/btcpay.js`: shows an invoice's checkout over a shop's page, under the names that plugins call. It says what the checkout
 * reports in the words that they know.
 */
// Runs in browsers, without Effect: the platform's own functions are all it has. A plain script: no name may be global.

interface Told {
  readonly data: unknown
  readonly origin: string
}

/** What the checkout shows, as plugins name it. What only waits is new. */
const words: Readonly<Record<string, string>> = {
  seen: "paid",
  paid: "complete",
  expired: "expired",
  failed: "invalid",
  cancelled: "invalid"
}

const start = () => {
  const script = document.currentScript instanceof HTMLScriptElement ? document.currentScript.src : location.href
  let prefix = script.replace(/\/modal\/btcpay\.js.*$/, "")
  let shown: { readonly id: string; readonly frame: HTMLIFrameElement } | undefined
  let onEnter = () => {}
  let onLeave = () => {}
  const receivers: Array<(told: Told) => void> = []

  const showFrame = (): void => {
    if (shown === undefined) return
    onEnter()
    shown.frame.style.display = "block"
  }

  const hideFrame = (): void => {
    if (shown === undefined) return
    onLeave()
    shown.frame.remove()
    shown = undefined
  }

  const showInvoice = (id: string): void => {
    shown?.frame.remove()
    const frame = document.createElement("iframe")
    frame.src = `${prefix}/invoice?id=${encodeURIComponent(id)}&view=modal`
    frame.allow = "clipboard-write"
    frame.title = "Payment"
    Object.assign(frame.style, {
      ...{ position: "fixed", inset: "0", width: "100%", height: "100%", border: "0", zIndex: "2000" },
      display: "none"
    })
    shown = { id, frame }
    document.body.append(frame)
    showFrame()
  }

  window.addEventListener("message", ({ data, origin, source }) => {
    if (shown === undefined || source !== shown.frame.contentWindow || origin !== new URL(prefix, location.href).origin)
      return
    if (data?.tilld !== "checkout") return
    const { id: invoiceId } = shown
    const said = data.close === true ? "close" : { invoiceId, status: words[data.state] ?? "new" }
    for (const receive of receivers) receive({ data: said, origin })
    if (data.close === true) hideFrame()
  })

  Object.assign(window, {
    btcpay: {
      ...{ showFrame, hideFrame, showInvoice },
      setApiUrlPrefix: (url: string) => {
        prefix = url.replace(/\/+$/, "")
      },
      onModalWillEnter: (f: () => void) => {
        onEnter = f
      },
      onModalWillLeave: (f: () => void) => {
        onLeave = f
      },
      onModalReceiveMessage: (f: (told: Told) => void) => {
        receivers.push(f)
      }
    }
  })
}

start()
