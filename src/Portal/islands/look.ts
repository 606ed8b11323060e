/** The preview of a checkout's look follows what is typed, and a logo is made small enough to be sent in a form. */
import { themesOf } from "../../Domain/theme.ts"

const part = (name: string) => document.querySelector(`[data-preview="${name}"]`)
const field = (id: string) => document.getElementById(id)

const name = field("shop-name")
const accent = field("shop-accent")
const colours = document.querySelector<HTMLInputElement>("[data-colours]")

const show = () => {
  if (name instanceof HTMLInputElement) part("name")?.replaceChildren(name.value || "Your shop")
  if (accent instanceof HTMLInputElement && /^#[0-9a-f]{6}$/i.test(accent.value)) {
    for (const [scheme, { accent: colour, onAccent }] of Object.entries(themesOf(accent.value.toLowerCase()))) {
      part(scheme)?.setAttribute("fill", colour)
      part(`on-${scheme}`)?.setAttribute("fill", onAccent)
    }
    if (colours !== null) colours.value = accent.value
  }
}
name?.addEventListener("input", show)
accent?.addEventListener("input", show)
if (colours !== null) {
  colours.hidden = false
  colours.addEventListener("input", () => {
    if (accent instanceof HTMLInputElement) accent.value = colours.value
    show()
  })
}

/** Pixels a side, and bytes that a form has room for, and the sides that are tried until the picture is as small, in pixels. */
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
