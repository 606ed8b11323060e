/**
 * The accent colour of a shop as CSS. Whatever colour a shop names, text stays readable: the colour is darkened on light
 * pages and lightened on dark ones until its contrast is enough (WCAG 2.2, 1.4.3 and 1.4.11).
 */

/** Red, green and blue, each 0 to 255. */
type Rgb = readonly [red: number, green: number, blue: number]

const parse = (hex: string): Rgb => {
  const channel = (at: number) => Number.parseInt(hex.slice(at, at + 2), 16)
  return [channel(1), channel(3), channel(5)]
}

const format = (rgb: Rgb): string =>
  `#${rgb.map((channel) => Math.round(channel).toString(16).padStart(2, "0")).join("")}`

/** https://www.w3.org/TR/WCAG22/#dfn-relative-luminance */
const luminance = (rgb: Rgb): number => {
  const [red = 0, green = 0, blue = 0] = rgb.map((channel) => {
    const share = channel / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/** The contrast ratio of two colours, 1 to 21. */
export const contrast = (a: string, b: string): number => {
  const [one, other] = [luminance(parse(a)), luminance(parse(b))]
  return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05)
}

/** What text needs on its background; on a dark one more, where a small text is dim otherwise. */
const enough = 4.5
const enoughOnDark = 7

const steps = 20

const mixed = (rgb: Rgb, toward: number, share: number): Rgb => {
  const [red, green, blue] = rgb.map((channel) => channel + (toward - channel) * share)
  return [red ?? 0, green ?? 0, blue ?? 0]
}

/** Brighter by `share` of what it can be in its own hue. */
const brighter = (rgb: Rgb, share: number): Rgb => {
  const factor = 1 + (255 / Math.max(1, ...rgb) - 1) * share
  const [red = 0, green = 0, blue = 0] = rgb.map((channel) => channel * factor)
  return [red, green, blue]
}

/**
 * The colour, just as far darker or brighter as it needs to be to be read on `background`. White is mixed in last: a colour
 * that is pale looks like a button that cannot be used.
 */
const readableOn = (accent: string, background: string): string => {
  const isLight = luminance(parse(background)) > 0.5
  const rgb = parse(accent)
  const shares = Array.from({ length: steps }, (_, step) => step / steps)
  const tried = isLight
    ? shares.map((share) => mixed(rgb, 0, share))
    : [...shares.map((share) => brighter(rgb, share)), ...shares.map((share) => mixed(brighter(rgb, 1), 255, share))]
  const least = isLight ? enough : enoughOnDark
  const readable = tried.map(format).find((colour) => contrast(colour, background) >= least)
  return readable ?? (isLight ? "#000000" : "#ffffff")
}

/** The page's and the card's backgrounds in `Pages/tokens.css`; the one that is harder to read on decides. */
const light = "#f6f7f9"
const dark = "#181c22"

const textOn = (background: string): string =>
  contrast("#ffffff", background) >= contrast("#000000", background) ? "#ffffff" : "#000000"

/** What an accent becomes on a page of each scheme, and the colour of texts on it. */
export const themesOf = (accent: string) => {
  const on = (background: string) => {
    const readable = readableOn(accent, background)
    return { accent: readable, onAccent: textOn(readable) }
  }
  return { light: on(light), dark: on(dark) }
}

const rule = (accent: string): string => `:root{--accent:${accent};--on-accent:${textOn(accent)}}`

/** The stylesheet of an accent such as `#1f5fd1`. */
export const themeOf = (accent: string): string =>
  `${rule(readableOn(accent, light))}@media (prefers-color-scheme:dark){${rule(readableOn(accent, dark))}}`
