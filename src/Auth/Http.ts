import { Effect } from "effect"
import { Keys } from "../Auth.ts"
import { ApiError } from "../Domain/ApiError.ts"
import type { ApiKey, Permission } from "../Domain/ApiKey.ts"
import type { StoreUnavailable } from "../Sql.ts"

/** The key behind an `X-API-Key` header. */
export type Authenticate = (header: string | undefined) => Effect.Effect<ApiKey, ApiError | StoreUnavailable>

export const makeAuthenticate: Effect.Effect<Authenticate, never, Keys> = Effect.map(Keys, (keys) => (header) => {
  if (header === undefined) return unauthorized("The API key is missing: send it in the X-API-Key header.")
  return Effect.flatMap(keys.authenticate(header), (key) =>
    key === undefined ? unauthorized("The API key is invalid.") : Effect.succeed(key)
  )
})

const unauthorized = (message: string) => new ApiError({ code: "UNAUTHORIZED", message })

/** Refuses a key that may not do this, and names all that it lacks. */
export const authorize = (key: ApiKey, needed: ReadonlyArray<Permission>): Effect.Effect<void, ApiError> => {
  const lacking = needed.filter((permission) => !key.permissions.includes(permission))
  if (lacking.length === 0) return Effect.void
  const what = `permission${lacking.length === 1 ? "" : "s"} ${lacking.join(" and ")}`
  return new ApiError({ code: "FORBIDDEN", message: `The API key lacks the ${what}.` })
}
