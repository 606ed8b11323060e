/** The script of the checkout page: all that it does, the page does without it in another way. */
// Runs in browsers, without Effect: the platform's own functions are all it has.
// @effect-diagnostics globalTimers:off
import { addCopyButtons } from "./copy.ts"
import { keepCurrent } from "./keepCurrent.ts"
import { showLocalTimes } from "./localTimes.ts"
import { closeByKey, isFramed, tellShop } from "./shop.ts"
import { showTimeLeft } from "./timeLeft.ts"
import { offerWallets } from "./wallets.ts"

/** Seconds until a payer is taken back to the shop: as the page says. */
const returnAfter = 10

/**
 * Takes a payer back to the shop who has seen the payment being paid, and nothing else that is to be read. A receipt that is opened
 * again stays, as does a page over a shop's own, which decides itself what comes next.
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

/** What is done to each `<main>`, the first one and those that replace it. */
const enhance = (main: HTMLElement): void => {
  addCopyButtons(main)
  offerWallets(main)
  showLocalTimes(main)
  showTimeLeft(main)
  tellShop(main)
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
