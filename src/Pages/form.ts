import { isUtf8 } from "node:buffer"
import type { PageRequest } from "../Http/PageHandler.ts"

/** Why a form was not read. */
export type FormProblem = "too large" | "too many fields" | "not a form"

/** Fields of a form: a page's hundred rows to choose from, and as many again. */
export const mostFields = 200

const urlEncoded = /^application\/x-www-form-urlencoded\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?$/i

/** The fields of a posted form, or why it is none: only `application/x-www-form-urlencoded` in UTF-8 is taken. */
export const readForm = ({ body, headers }: PageRequest): URLSearchParams | FormProblem => {
  if (body === undefined) return "too large"
  if (body.length > 0 && !urlEncoded.test(headers["content-type"] ?? "")) return "not a form"
  if (!isUtf8(body)) return "not a form"
  const form = new URLSearchParams(body.toString("utf8"))
  return form.size > mostFields ? "too many fields" : form
}
