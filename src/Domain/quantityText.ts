/** `1 payment`, `2 payments` */
export const quantityText = (n: number, what: string): string =>
  `${n} ${what}${n === 1 ? "" : /s$/.test(what) ? "es" : "s"}`
