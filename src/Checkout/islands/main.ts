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
const returnAfter = 3

/** What is done to each `<main>`, the first one and those that replace it. */
const enhance = (main: HTMLElement): void => {
  addCopyButtons(main)
  offerWallets(main)
  showLocalTimes(main)
  showTimeLeft(main)
  tellShop(main)
  const back = main.querySelector<HTMLAnchorElement>("#back")
  // Over a shop's page, that page decides what comes next.
  if (back !== null && !isFramed) setTimeout(() => location.assign(back.href), returnAfter * 1000)
}

const main = document.querySelector("main")
if (main?.dataset["version"] !== undefined) {
  enhance(main)
  keepCurrent(main, enhance)
  closeByKey()
}
