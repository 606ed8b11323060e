import { isUtf8 } from "node:buffer"
import type { PageRequest } from "../Http/PageHandler.ts"

/** Why a form was not read. */
export type FormProblem = "too large" | "too many fields" | "not a form"

/** Fields of a form: a page's hundred rows to choose from, and as many again. */
export const mostFields = 200

const urlEncoded = /^application\/x-www-form-urlencoded\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?$/i

/** Whether there are more fields than there may be. Before they are parsed: Node 24 takes 10 ms for 64 KiB of `a&`. */
const hasTooMany = (body: Buffer): boolean => {
  let fields = 1
  for (let at = body.indexOf("&"); at !== -1; at = body.indexOf("&", at + 1)) if (++fields > mostFields) return true
  return false
}

/** The fields of a posted form, or why it is none: only `application/x-www-form-urlencoded` in UTF-8 is taken. */
export const readForm = ({ body, headers }: PageRequest): URLSearchParams | FormProblem => {
  if (body === undefined) return "too large"
  if (body.length > 0 && !urlEncoded.test(headers["content-type"] ?? "")) return "not a form"
  if (!isUtf8(body)) return "not a form"
  return hasTooMany(body) ? "too many fields" : new URLSearchParams(body.toString("utf8"))
}
