import { clockTime } from "../../Domain/clockTime.ts"

/** Puts times, which the page has in UTC, into the browser's own zone. */
export const showLocalTimes = (main: HTMLElement): void => {
  for (const time of main.querySelectorAll<HTMLElement>("time[data-local]")) {
    time.textContent = clockTime(Number(time.dataset["local"]), document.documentElement.lang)
  }
}
