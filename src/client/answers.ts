import { TilldError } from "./errors.ts"

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The JSON object that a text is; undefined when it is something else. */
export const parseObject = (text: string): Readonly<Record<string, unknown>> | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Seconds. A date, as proxies may send it, counts from the answer's own: the clock here may be another one. */
const retryAfterOf = (headers: Headers): number | undefined => {
  const value = headers.get("retry-after")
  if (value === null) return undefined
  if (/^\d+$/.test(value)) return Number(value)
  const seconds = (Date.parse(value) - Date.parse(headers.get("date") ?? "")) / 1_000
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds)
}

const foreign = ({ headers, status }: Response): string => {
  const where = headers.get("location")
  if (status >= 300 && status < 400) {
    return `The answer is a redirect (status ${status}${where === null ? "" : ` to ${where}`}), which is not followed, so that the API key goes nowhere else: baseUrl must be where tilld itself answers.`
  }
  const type = headers.get("content-type") ?? "no content type"
  return `The answer (status ${status}, ${type}) is not one of tilld: it comes from something else at baseUrl, or from a proxy before it.`
}

/** What an answer carries, or the error that it is. `text` is its whole body; `hide` takes out what nobody may read. */
export const contentOf = (
  response: Response,
  text: string,
  hide: (text: string) => string
): Readonly<Record<string, unknown>> => {
  const content = parseObject(response.ok ? text : hide(text))
  if (response.ok && content !== undefined) return content
  const error = isRecord(content?.["error"]) ? content["error"] : {}
  const { code, details, message, requestId } = error
  const isOurs = !response.ok && typeof code === "string" && typeof message === "string"
  throw new TilldError({
    status: response.status,
    code: isOurs ? code : "INVALID_RESPONSE",
    message: isOurs ? message : hide(foreign(response)),
    details: isOurs ? details : undefined,
    requestId: typeof requestId === "string" ? requestId : (response.headers.get("x-request-id") ?? undefined),
    retryAfter: retryAfterOf(response.headers)
  })
}
