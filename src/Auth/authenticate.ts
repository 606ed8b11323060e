import { Effect, Either } from "effect"
import { Keys } from "../Auth.ts"
import { ApiError } from "../Domain/ApiError.ts"
import type { ApiKey, Permission } from "../Domain/ApiKey.ts"
import type { StoreUnavailable } from "../Sql.ts"
import { LogLimit } from "../Telemetry/LogLimit.ts"
import type { WrongAddress } from "./Keys.ts"

type Refuse = (error: ApiError) => Effect.Effect<never, ApiError>

/**
 * Finds the key of an `X-API-Key` header. When it is missing or invalid, or may not be used from the client's address,
 * fails by way of `refuse`. An `Either`, unless the store has to be asked or the key is refused.
 */
export type Authenticate = (
  header: string | undefined,
  clientAddress: () => string,
  refuse: Refuse
) => Effect.Effect<ApiKey, ApiError | StoreUnavailable>

/** A key that is used from a wrong address is logged once a minute: it may have been stolen. */
const wrongAddressLogs = { perKey: 1, inAll: 60 }

export const makeAuthenticate: Effect.Effect<Authenticate, never, Keys> = Effect.gen(function* () {
  const keys = yield* Keys
  const logs = new LogLimit(wrongAddressLogs)

  const logWrongAddress = ({ address, key }: WrongAddress) => {
    const line = Effect.logWarning("an API key was used from an address that is not on its list")
    return logs.write(key, Effect.annotateLogs(line, { key, address }))
  }

  return (header, clientAddress, refuse) => {
    if (header === undefined)
      return refuse(unauthorized(`The API key is missing: send it in the X-API-Key header. ${madeAt}.`))
    const refuseWrong = (wrong: WrongAddress) =>
      Effect.zipRight(logWrongAddress(wrong), refuse(forbiddenFrom(wrong.address)))
    const found = keys.authenticate(header, clientAddress)
    if (Either.isEither(found) && Either.isRight(found) && found.right !== undefined) {
      // Sound: an Either is the effect of its own type.
      return found as Either.Either<ApiKey>
    }
    return Effect.flatMap(found, (key) => (key === undefined ? refuse(invalid) : Effect.succeed(key))).pipe(
      Effect.catchTag("WrongAddress", refuseWrong)
    )
  }
})

const madeAt = "Keys are made and listed in the portal, under Keys (/portal), and made by tilld keys create"

const unauthorized = (message: string) => new ApiError({ code: "UNAUTHORIZED", message })

const invalid = unauthorized(`The API key is invalid, revoked or has expired. ${madeAt}.`)

const forbiddenFrom = (address: string) =>
  new ApiError({
    code: "FORBIDDEN",
    message: `The API key may not be used from ${address}: put this address on the key's list, in the portal, under Keys (/portal), or with tilld keys change.`
  })

/** The error for a key that lacks a needed permission, naming all that it lacks; undefined for a key that has them. */
export const forbiddenTo = (key: ApiKey, needed: ReadonlyArray<Permission>): ApiError | undefined => {
  const lacking = needed.filter((permission) => !key.permissions.includes(permission))
  if (lacking.length === 0) return undefined
  const what = `permission${lacking.length === 1 ? "" : "s"} ${lacking.join(" and ")}`
  return new ApiError({
    code: "FORBIDDEN",
    message: `The API key lacks the ${what}: use a key that has ${lacking.length === 1 ? "it" : "them"}. ${madeAt} --permissions.`
  })
}
