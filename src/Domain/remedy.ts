const mark = ". Remedy: "

/** A message that names one remedy, apart from it. One with several, or none, is what is wrong as a whole. */
export const splitRemedy = (message: string): { readonly wrong: string; readonly remedy?: string } => {
  const [wrong, remedy, ...more] = message.split(mark)
  return wrong === undefined || remedy === undefined || more.length > 0 ? { wrong: message } : { wrong, remedy }
}
