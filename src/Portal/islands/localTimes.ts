// Runs in browsers, without Effect: the platform's own functions are all it has.
// @effect-diagnostics globalDate:off
/** Puts times, which the page has in UTC, into the browser's own zone: of today the clock alone, with UTC on the pointer. */
const now = new Date()

for (const time of document.querySelectorAll("main time")) {
  const at = new Date(time.getAttribute("datetime") ?? "")
  if (Number.isNaN(at.getTime())) continue
  const isToday = at.toDateString() === now.toDateString()
  const isThisYear = at.getFullYear() === now.getFullYear()
  const day: Intl.DateTimeFormatOptions = { day: "numeric", month: "short", ...(isThisYear ? {} : { year: "numeric" }) }
  const clock: Intl.DateTimeFormatOptions = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" }
  time.setAttribute("title", time.textContent ?? "")
  time.textContent = at.toLocaleString("en-GB", isToday ? { ...clock, second: "2-digit" } : { ...day, ...clock })
}
