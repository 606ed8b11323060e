// `/modal/btcpay.js`: opens an invoice's checkout over a shop's page under the names that plugins for BTCPay Server call, and says what
// it reports in the words that they know. A plain script of its own: no name may be global.
import { openCheckout } from "./checkout.ts"

/** What the checkout shows, as plugins name it. What only waits is new. */
const words: Readonly<Record<string, string>> = {
  seen: "paid",
  paid: "complete",
  expired: "expired",
  failed: "invalid",
  cancelled: "invalid"
}

type Receive = (message: { readonly data: unknown; readonly origin: string }) => void

const start = () => {
  const script = document.currentScript instanceof HTMLScriptElement ? document.currentScript.src : location.href
  let prefix = script.slice(0, script.indexOf("/modal/btcpay.js"))
  let hideFrame = () => {}
  let enter = () => {}
  let leave = () => {}
  let receive: Receive = () => {}

  const showInvoice = (invoiceId: string): void => {
    const url = new URL(`${prefix}/invoice?id=${encodeURIComponent(invoiceId)}&view=modal`, location.href).href
    const tell = (data: unknown) => receive({ data, origin: new URL(url).origin })
    // What the shop hides the customer has not closed.
    let isHidden = false
    hideFrame()
    enter()
    const close = openCheckout(url, {
      onState: (state) => tell({ invoiceId, status: words[state] ?? "new" }),
      onClose: () => {
        if (!isHidden) tell("close")
        leave()
      }
    })
    hideFrame = () => {
      isHidden = true
      close()
    }
  }

  const btcpay = {
    showInvoice,
    // The checkout is in sight from the beginning.
    showFrame: () => {},
    hideFrame: () => hideFrame(),
    setApiUrlPrefix: (url: string) => {
      prefix = url.endsWith("/") ? url.slice(0, -1) : url
    },
    onModalWillEnter: (callback: () => void) => {
      enter = callback
    },
    onModalWillLeave: (callback: () => void) => {
      leave = callback
    },
    onModalReceiveMessage: (callback: Receive) => {
      receive = callback
    }
  }
  Object.assign(window, { btcpay })
}

start()
