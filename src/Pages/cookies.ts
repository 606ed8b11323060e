/** The value of a cookie; undefined where the request has none of that name. */
export const cookieOf = (header: string | undefined, name: string): string | undefined => {
  for (const part of (header ?? "").split(";")) {
    const [key = "", ...value] = part.trim().split("=")
    if (key === name) return value.join("=")
  }
  return undefined
}
