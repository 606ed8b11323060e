/** The script of the checkout page, a progressive enhancement: without it the page does the same in another way. */
// Runs in browsers, without Effect: the platform's own functions are all it has.
// @effect-diagnostics globalDate:off globalTimers:off

import { clockTime, countdown, shareLeft } from "../../lib/clock.ts"
import { copyBy } from "../../Pages/islands/copyBy.ts"
import { announce, keepCurrent } from "./keepCurrent.ts"
import { offerWallets } from "./wallets.ts"

/** The payment's status that a shop's page gets where it frames the checkout, by what `<main>` shows. */
const statuses: Readonly<Record<string, string>> = {
  choosing: "pending",
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

const isFramed = window.parent !== window

/** Only origins that the shop has named can frame the page, and they get nothing but a status. */
const tellShop = ({ dataset: { state = "" } }: HTMLElement): void => {
  if (isFramed) window.parent.postMessage({ tilld: "checkout", status: statuses[state], state }, "*")
}

/** The Escape key closes the checkout over a shop's page also while the checkout has the focus. */
const closeByKey = (): void => {
  if (!isFramed) return
  document.addEventListener("keydown", ({ key }) => {
    if (key === "Escape") window.parent.postMessage({ tilld: "checkout", close: true }, "*")
  })
}

/** From this share on the time is shown as short, in percent. */
const shortFrom = 25

/** Counts down by the server's clock. It is not announced: it would never end. At its end there is nothing to choose any more. */
const showTimeLeft = (main: HTMLElement): void => {
  const clock = main.querySelector<HTMLElement>("[data-ends]")
  if (!clock) return
  const period = { startsAt: Number(clock.dataset["starts"]), endsAt: Number(clock.dataset["ends"]) }
  const ahead = Number(main.dataset["now"]) - Date.now()
  const show = () => {
    if (!main.isConnected) return clearInterval(timer)
    const now = Date.now() + ahead
    clock.textContent = countdown(period.endsAt - now, document.documentElement.lang)
    clock.classList.toggle("short", shareLeft(period, now) < shortFrom)
    if (main.dataset["state"] !== "choosing" || now < period.endsAt + 1_000) return
    clearInterval(timer)
    location.reload()
  }
  const timer = setInterval(show, 1_000)
  show()
}

/** Puts times, which the page has in UTC, into the browser's own zone. */
const showLocalTimes = (main: HTMLElement): void => {
  for (const time of main.querySelectorAll<HTMLElement>("time[data-local]")) {
    time.textContent = clockTime(Number(time.dataset["local"]), document.documentElement.lang)
  }
}

/** Adds a button to everything that can be copied. */
const addCopyButtons = (main: HTMLElement): void => {
  const { byHand = "", copied: done = "", copyWord } = main.dataset
  for (const row of main.querySelectorAll<HTMLElement>("[data-copy]")) {
    const { copy: text = "", copyId: id = "" } = row.dataset
    const textContent = `${copyWord}: ${row.querySelector("dt")?.textContent?.trim()}`
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

/** The payer's last choice in this browser comes first. */
const offerLastFirst = (main: HTMLElement): void => {
  const form = main.querySelector<HTMLFormElement>(".offers")
  if (form === null) return
  try {
    const last = localStorage.getItem("choice")
    const button = [...form.querySelectorAll("button")].find(({ disabled, value }) => value === last && !disabled)
    if (button) form.prepend(button)
    form.addEventListener("submit", ({ submitter }) =>
      localStorage.setItem("choice", (submitter as HTMLButtonElement).value)
    )
  } catch {
    // In a frame the browser may refuse storage.
  }
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
  offerLastFirst(main)
}

const main = document.querySelector("main")
if (main?.dataset["state"] !== undefined) {
  enhance(main)
  closeByKey()
  if (main.dataset["version"] !== undefined) {
    keepCurrent(main, (replaced) => {
      enhance(replaced)
      takeBack(replaced)
    })
  }
}
