import { Effect } from "effect"
import { Keys } from "../Auth.ts"
import { ApiError } from "../Domain/ApiError.ts"
import type { ApiKey, Permission } from "../Domain/ApiKey.ts"
import type { StoreUnavailable } from "../Sql.ts"

type Refuse = (error: ApiError) => Effect.Effect<never, ApiError>

/** Finds the key of an `X-API-Key` header. When it is missing or invalid, fails by way of `refuse`. */
export type Authenticate = (
  header: string | undefined,
  refuse: Refuse
) => Effect.Effect<ApiKey, ApiError | StoreUnavailable>

export const makeAuthenticate: Effect.Effect<Authenticate, never, Keys> = Effect.map(
  Keys,
  (keys) => (header, refuse) => {
    if (header === undefined) return refuse(unauthorized("The API key is missing: send it in the X-API-Key header."))
    return Effect.flatMap(keys.authenticate(header), (key) =>
      key === undefined ? refuse(unauthorized("The API key is invalid.")) : Effect.succeed(key)
    )
  }
)

const unauthorized = (message: string) => new ApiError({ code: "UNAUTHORIZED", message })

/** The error for a key that lacks a needed permission, naming all that it lacks; undefined for a key that has them. */
export const forbiddenTo = (key: ApiKey, needed: ReadonlyArray<Permission>): ApiError | undefined => {
  const lacking = needed.filter((permission) => !key.permissions.includes(permission))
  if (lacking.length === 0) return undefined
  const what = `permission${lacking.length === 1 ? "" : "s"} ${lacking.join(" and ")}`
  return new ApiError({ code: "FORBIDDEN", message: `The API key lacks the ${what}.` })
}
