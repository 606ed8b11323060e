const units: Readonly<Record<string, number>> = { "": 1, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12 }

/** Bytes of a text such as `500MB` or `1.5 GB`, in powers of ten; undefined where it is none. */
export const parseBytes = (text: string): number | undefined => {
  const [, number, unit = ""] = /^(\d{1,16}(?:\.\d{1,3})?) ?([kMGT]B)?$/.exec(text) ?? []
  return number === undefined ? undefined : Math.round(Number(number) * (units[unit] ?? Number.NaN))
}

/** Bytes as people read them. */
export const bytesText = (bytes: number): string => {
  if (bytes < 1e6) return `${(bytes / 1e3).toFixed(1)} kB`
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(2)} GB`
}

/** `1 payment`, `2 payments` */
export const quantityText = (n: number, what: string): string =>
  `${n} ${what}${n === 1 ? "" : /s$/.test(what) ? "es" : "s"}`
