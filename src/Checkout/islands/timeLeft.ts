// Runs in browsers, without Effect: the platform's own functions are all it has.
// @effect-diagnostics globalDate:off globalTimers:off
import { countdown } from "../../Domain/countdown.ts"

/** Counts down in the last quarter of the payment's time, by the server's clock. It is not announced: it would never end. */
export const showTimeLeft = (main: HTMLElement): void => {
  const clock = main.querySelector<HTMLElement>("[data-ends]")
  const line = clock?.parentElement
  if (clock === null || line === null || line === undefined) return
  const { ends, from } = clock.dataset
  const ahead = Number(main.dataset["now"]) - Date.now()
  const show = () => {
    if (!main.isConnected) return clearInterval(timer)
    const now = Date.now() + ahead
    line.hidden = now < Number(from)
    clock.textContent = countdown(Number(ends) - now, document.documentElement.lang)
  }
  const timer = setInterval(show, 1_000)
  show()
}
