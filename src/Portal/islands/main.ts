// Runs in browsers, without Effect: the platform's own functions are all it has.
// @effect-diagnostics globalTimers:off
// @effect-diagnostics globalDate:off
/** The portal's script, a progressive enhancement: without it the pages do the same in another way. */

import {
  browserSupportsWebAuthn,
  type PublicKeyCredentialCreationOptionsJSON,
  type PublicKeyCredentialRequestOptionsJSON,
  startAuthentication,
  startRegistration
} from "@simplewebauthn/browser"
import { copyBy } from "../../Pages/islands/copyBy.ts"

/** Of a logo, which a form is to have room for: pixels a side, bytes, and the sides that are tried until it is as small. */
const longest = 1_000
const largest = 40 * 1024
const sides = [512, 384, 256, 128, 64]

/** The picture itself where it is small enough, else as a WebP no larger than it has to be. */
const smallEnough = async (file: Blob): Promise<Blob | undefined> => {
  const picture = await createImageBitmap(file)
  if (file.size <= largest && Math.max(picture.width, picture.height) <= longest) return file
  for (const side of sides) {
    const scale = Math.min(1, side / Math.max(picture.width, picture.height))
    const canvas = document.createElement("canvas")
    canvas.width = Math.max(1, Math.round(picture.width * scale))
    canvas.height = Math.max(1, Math.round(picture.height * scale))
    canvas.getContext("2d")?.drawImage(picture, 0, 0, canvas.width, canvas.height)
    const made = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/webp", 0.9))
    if (made !== null && made.size <= largest) return made
  }
  return undefined
}

const base64url = async (blob: Blob): Promise<string> => {
  const text = Array.from(new Uint8Array(await blob.arrayBuffer()), (byte) => String.fromCharCode(byte)).join("")
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")
}

const uploads = document.querySelector<HTMLElement>("[data-uploads]")
const chosen = uploads?.querySelector<HTMLInputElement>("input[type=file]")
const image = uploads?.querySelector<HTMLInputElement>("input[name=image]")
if (uploads && chosen && image) {
  uploads.hidden = false
  chosen.form?.addEventListener("submit", async (event) => {
    const [file] = chosen.files ?? []
    if (image.value !== "" || file === undefined) return
    event.preventDefault()
    const small = await smallEnough(file).catch(() => undefined)
    image.value = small === undefined ? "none" : await base64url(small)
    chosen.form?.requestSubmit()
  })
}

/**
 * A page that shows what changes by itself reads itself again when the server tells of a change: no more often than it says,
 * only while it is in view, and never under somebody's hands. Then a notice offers it.
 */
const main = document.querySelector<HTMLElement>("main[data-changes]")
const offer = document.querySelector<HTMLElement>("[data-changed]")
const interval = Number(main?.dataset.interval)
const loadedAt = Date.now()

/** Whether somebody types, has chosen something, or is at something of the page with the keyboard. */
const isInUse = (): boolean => {
  const { activeElement } = document
  const isAtPart = activeElement instanceof HTMLElement && main?.contains(activeElement) === true
  if (isAtPart && activeElement.tabIndex >= 0) return true
  const fields = [...document.querySelectorAll<HTMLInputElement>("input:not([type=hidden])")]
  return fields.some(
    ({ checked, defaultChecked, defaultValue, value }) => value !== defaultValue || checked !== defaultChecked
  )
}

/** The page as it is now. What was done is said once. */
const pageAgain = (): string => {
  const url = new URL(location.href)
  for (const name of ["done", "ordered", "due", "refused"]) url.searchParams.delete(name)
  return url.href
}

const readAgain = () => {
  if (offer === null || !isInUse()) {
    location.replace(pageAgain())
    return
  }
  const { changed = "", show = "" } = offer.dataset
  const text = document.createElement("p")
  text.className = "notice neutral"
  const link = document.createElement("a")
  link.href = pageAgain()
  link.textContent = show
  text.append(`${changed} `, link)
  offer.replaceChildren(text)
}

if (main !== null) {
  let source: EventSource | undefined
  let isAwaited = false
  const follow = () => {
    source?.close()
    source = document.hidden ? undefined : new EventSource(main.dataset.changes ?? "")
    source?.addEventListener("message", () => {
      if (isAwaited) return
      isAwaited = true
      setTimeout(readAgain, Math.max(500, loadedAt + interval - Date.now()))
    })
  }
  document.addEventListener("visibilitychange", follow)
  follow()
}

/** Shows the forms of passkeys where the browser has them, and fills them in before they are sent. */
const answerOf = (form: HTMLFormElement): Promise<unknown> => {
  const options: unknown = JSON.parse(form.dataset.options ?? "")
  // The server has made them with the same library.
  return form.dataset.passkey === "create"
    ? startRegistration({ optionsJSON: options as PublicKeyCredentialCreationOptionsJSON })
    : startAuthentication({ optionsJSON: options as PublicKeyCredentialRequestOptionsJSON })
}

for (const form of browserSupportsWebAuthn() ? document.querySelectorAll<HTMLFormElement>("form[data-passkey]") : []) {
  const field = form.elements.namedItem(form.dataset.field ?? "")
  if (!(field instanceof HTMLInputElement)) continue
  form.hidden = false
  form.addEventListener("submit", async (event) => {
    if (field.value !== "") return
    event.preventDefault()
    const said = form.querySelector("[role=status]")
    if (said !== null) said.textContent = ""
    try {
      field.value = JSON.stringify(await answerOf(form))
      form.requestSubmit()
    } catch {
      if (said !== null) said.textContent = "The passkey was not used. Try again, or go on in another way."
    }
  })
}

/** Puts times, which the page has in UTC, into the browser's own zone, with UTC on the pointer. */
const now = new Date()

for (const time of document.querySelectorAll("main time")) {
  const at = new Date(time.getAttribute("datetime") ?? "")
  if (Number.isNaN(at.getTime())) continue
  const isThisYear = at.getFullYear() === now.getFullYear()
  const day: Intl.DateTimeFormatOptions = { day: "numeric", month: "short", ...(isThisYear ? {} : { year: "numeric" }) }
  const clock: Intl.DateTimeFormatOptions = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" }
  time.setAttribute("title", time.textContent ?? "")
  time.textContent = at.toLocaleString("en-GB", { ...day, ...clock })
}

/** Shows the buttons that copy. */
for (const button of document.querySelectorAll<HTMLButtonElement>("button[data-copy]")) {
  const byHand = "Selected: copy it with a long press or the keyboard."
  const place = button.parentElement ?? document.body
  button.hidden = false
  copyBy(button, { text: button.dataset.copy ?? "", place, done: " Copied", byHand })
}

/** Shows the checkbox that checks all others of its form's list. */
for (const all of document.querySelectorAll<HTMLInputElement>("input[data-chooses]")) {
  const others = document.querySelectorAll<HTMLInputElement>(
    `input[type="checkbox"][form="${CSS.escape(all.dataset.chooses ?? "")}"]`
  )
  all.hidden = false
  all.addEventListener("change", () => {
    for (const other of others) other.checked = all.checked
  })
}

/** A form that is on its way is not sent again: of two clicks only the first one's answer would be seen by nobody. */
const sent = new WeakSet<EventTarget>()

addEventListener("submit", (event) => {
  // Not sent: a script stopped it, to fill in what is missing.
  if (event.defaultPrevented || !(event.target instanceof HTMLFormElement) || event.target.method !== "post") return
  if (sent.has(event.target)) event.preventDefault()
  sent.add(event.target)
})

/** Long work goes on by itself, and a key to its shop: the form is submitted as soon as it is shown. */
document.querySelector<HTMLFormElement>("form[data-continues]")?.requestSubmit()

// Back on a page that the browser has kept, its forms may be sent once more.
addEventListener("pageshow", ({ persisted }) => {
  if (!persisted) return
  for (const form of document.forms) sent.delete(form)
})
