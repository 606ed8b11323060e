import { Either } from "effect"

/** A segment with invalid percent-encoding is left as it is: no id matches it. */
const decodeSegment = (segment: string): string =>
  Either.getOrElse(
    Either.try(() => decodeURIComponent(segment)),
    () => segment
  )

/**
 * The parameters of a path that fits a pattern such as `/v1/webhooks/:id`, both split at their slashes; undefined where it
 * does not. No parameter is empty.
 */
export const parametersIn = (
  pattern: ReadonlyArray<string>,
  segments: ReadonlyArray<string>
): Readonly<Record<string, string>> | undefined => {
  if (pattern.length !== segments.length) return undefined
  const found: Record<string, string> = {}
  for (const [i, part] of pattern.entries()) {
    const segment = segments[i] ?? ""
    if (part.startsWith(":") && segment !== "") found[part.slice(1)] = decodeSegment(segment)
    else if (part !== segment) return undefined
  }
  return found
}
