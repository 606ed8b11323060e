const origin = "http://portal.invalid"

/** Where to go on after signing in: a page of an account, and never another site. Undefined for anything else. */
export const nextPath = (given: string | null): string | undefined => {
  if (given === null || given.length > 2_000 || !given.startsWith("/") || !URL.canParse(given, origin)) return undefined
  // Parsed as the browser would: "/\evil.example", "//evil.example" and "/portal/a/../.." are not what they begin with.
  const url = new URL(given, origin)
  return url.origin === origin && url.pathname.startsWith("/portal/a/") ? url.pathname + url.search : undefined
}
