/** How the API of shop plugins words a refusal: one error `{code, message}`, or a list of fields with 422. */
import { ApiError, type ErrorCode, invalid, statusOf } from "../Domain/ApiError.ts"
import type { HttpReply } from "../Http/HttpReply.ts"

/** Where the words of this API differ from those of the own one. */
interface Said {
  readonly status?: number
  readonly code: string
  readonly missingPermission?: string
  readonly message?: string
}

class Details {
  constructor(readonly said: Said) {}
}

/** A refusal in this API's own words. @param as what it is in the own API: its status, unless `said` has one */
export const refusal = (as: ErrorCode, said: Said, message: string) =>
  new ApiError({ code: as, message, details: new Details(said) })

/** One field is wrong. */
export const fieldProblem = (path: string, message: string): ApiError => invalid([{ path, message }])

export const noSuch = (what: "invoice" | "webhook" | "paymentmethod") =>
  refusal("NOT_FOUND", { code: `${what}-not-found` }, `There is no such ${what} in this store: check its id.`)

export const missingPermission = (permission: string) =>
  refusal(
    "FORBIDDEN",
    { code: "missing-permission", missingPermission: permission },
    `The key lacks ${permission} for this store: pair the plugin again, or make a key that has it.`
  )

/** What the own API says in words of its own. */
const otherwise: Partial<Record<ErrorCode, Said>> = {
  UNAUTHORIZED: {
    code: "unauthenticated",
    message: "Send Authorization: token KEY, with a shop plugin's key that works."
  },
  NOT_FOUND: { code: "not-found", message: "This is not offered: invoices, payment methods, webhooks, refunds are." }
}

/** An error as this API writes it. */
export const pluginErrorReply = ({ code, details, headers = {}, message }: ApiError): HttpReply => {
  if (code === "VALIDATION_ERROR") return { status: 422, headers, text: JSON.stringify(details) }
  const plain = otherwise[code] ?? { code: code.toLowerCase().replaceAll("_", "-"), message }
  const said: Said = details instanceof Details ? { ...details.said, message } : plain
  const { status = statusOf[code], ...shown } = said
  return { status, headers, text: JSON.stringify(shown) }
}
