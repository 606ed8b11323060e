// Runs in browsers, without Effect: the platform's own functions are all it has.
// @effect-diagnostics globalDate:off globalTimers:off
import { countdown, shareLeft } from "../../Domain/countdown.ts"

/** From this share on the time is shown as short, in percent. */
const shortFrom = 25

/** Counts down by the server's clock. It is not announced: it would never end. */
export const showTimeLeft = (main: HTMLElement): void => {
  const clock = main.querySelector<HTMLElement>("[data-ends]")
  const place = clock?.closest(".time")
  if (!clock || !place) return
  const period = { startsAt: Number(clock.dataset["starts"]), endsAt: Number(clock.dataset["ends"]) }
  const ahead = Number(main.dataset["now"]) - Date.now()
  const show = () => {
    if (!main.isConnected) return clearInterval(timer)
    const now = Date.now() + ahead
    const share = shareLeft(period, now)
    clock.textContent = countdown(period.endsAt - now, document.documentElement.lang)
    place.querySelector(".rest")?.setAttribute("stroke-dasharray", `${share} 100`)
    place.classList.toggle("short", share < shortFrom)
  }
  const timer = setInterval(show, 1_000)
  show()
}
