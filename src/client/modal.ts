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
  let prefix = script.replace(/\/modal\/btcpay\.js.*$/, "")
  let hideFrame = () => {}
  let enter = () => {}
  let leave = () => {}
  const receivers: Array<Receive> = []

  const showInvoice = (invoiceId: string): void => {
    const url = new URL(`${prefix}/invoice?id=${encodeURIComponent(invoiceId)}&view=modal`, location.href).href
    const tell = (data: unknown) => {
      for (const receive of receivers) receive({ data, origin: new URL(url).origin })
    }
    hideFrame()
    enter()
    hideFrame = openCheckout(url, {
      onState: (state) => tell({ invoiceId, status: words[state] ?? "new" }),
      onClose: () => {
        tell("close")
        leave()
      }
    })
  }

  const btcpay = {
    showInvoice,
    // The checkout is in sight from the beginning.
    showFrame: () => {},
    hideFrame: () => hideFrame(),
    setApiUrlPrefix: (url: string) => {
      prefix = url.replace(/\/+$/, "")
    },
    onModalWillEnter: (callback: () => void) => {
      enter = callback
    },
    onModalWillLeave: (callback: () => void) => {
      leave = callback
    },
    onModalReceiveMessage: (receive: Receive) => void receivers.push(receive)
  }
  Object.assign(window, { btcpay })
}

start()
