/** The script of the checkout page, a progressive enhancement: without it the page does the same in another way. */
// Runs in browsers, without Effect: the platform's own functions are all it has.
// @effect-diagnostics globalTimers:off
import { copyBy } from "../../Pages/islands/copyBy.ts"
import { announce, keepCurrent } from "./keepCurrent.ts"
import { showLocalTimes } from "./localTimes.ts"
import { closeByKey, isFramed, tellShop } from "./shop.ts"
import { showTimeLeft } from "./timeLeft.ts"
import { offerWallets } from "./wallets.ts"

/** Adds a button to everything that can be copied. */
const addCopyButtons = (main: HTMLElement): void => {
  const { byHand = "", copied: done = "" } = main.dataset
  for (const row of main.querySelectorAll<HTMLElement>("[data-copy]")) {
    const { copy: text = "", copyId: id = "", copyLabel: textContent = "" } = row.dataset
    const place = row.querySelector("dd") ?? row
    const button = document.createElement("button")
    Object.assign(button, { type: "button", id, className: "copy", textContent })
    copyBy(button, { text, place, done, byHand }, () => announce(done))
    place.append(button)
  }
}

/** Seconds until a payer is taken back to the shop: as the page says. */
const returnAfter = 8

/**
 * Redirects a payer to the shop who has seen the payment being paid, unless the page shows more to read. A reopened
 * receipt stays, as does a page framed by a shop's own, which decides itself what comes next.
 */
const takeBack = (main: HTMLElement): void => {
  const back = main.querySelector<HTMLAnchorElement>("#back")
  const returning = main.querySelector<HTMLElement>(".returning")
  if (back === null || returning === null || isFramed) return
  returning.hidden = false
  const leaving = setTimeout(() => location.assign(back.href), returnAfter * 1000)
  main.querySelector("#stay")?.addEventListener("click", () => {
    clearTimeout(leaving)
    returning.hidden = true
  })
}

/** Milliseconds after which a link to a wallet app has opened none: the page is still in sight. */
const walletPatience = 2_000

const hintAtNoWallet = (main: HTMLElement): void => {
  main.querySelector("#open-wallet")?.addEventListener("click", () => {
    setTimeout(() => {
      const hint = main.querySelector<HTMLElement>("#no-wallet")
      if (hint !== null && document.visibilityState === "visible") hint.hidden = false
    }, walletPatience)
  })
}

const addPrintButton = (main: HTMLElement): void => {
  const place = main.querySelector<HTMLElement>("[data-print]")
  if (place === null) return
  const button = Object.assign(document.createElement("button"), {
    textContent: place.dataset["print"],
    type: "button"
  })
  button.addEventListener("click", () => window.print())
  place.append(button)
  place.hidden = false
}

/** Enhances each `<main>`, the first one and its replacements. */
const enhance = (main: HTMLElement): void => {
  addCopyButtons(main)
  offerWallets(main)
  showLocalTimes(main)
  showTimeLeft(main)
  tellShop(main)
  hintAtNoWallet(main)
  addPrintButton(main)
}

const main = document.querySelector("main")
if (main?.dataset["version"] !== undefined) {
  enhance(main)
  keepCurrent(main, (replaced) => {
    enhance(replaced)
    takeBack(replaced)
  })
  closeByKey()
}
