import { HttpApiMiddleware, HttpApiSecurity } from "@effect/platform"
import { Context, Option } from "effect"
import { unauthorizedBody } from "../Domain/ApiError.ts"
import type { ApiKey, Permission } from "../Domain/ApiKey.ts"

/** The API key of a request. It determines the account and the mode whose payments, webhooks and quotes are visible. */
export class CurrentKey extends Context.Tag("tilld/Auth/CurrentKey")<CurrentKey, ApiKey>() {}

/** The endpoint requires the header `X-API-Key`. */
export class ApiKeyAuth extends HttpApiMiddleware.Tag<ApiKeyAuth>()("tilld/Auth/ApiKeyAuth", {
  provides: CurrentKey,
  failure: unauthorizedBody,
  security: { apiKey: HttpApiSecurity.apiKey({ in: "header", key: "X-API-Key" }) }
}) {}

/** Annotates an endpoint with the permission that a key needs for it, or with several, all of which it needs; with none, any key may. */
export class RequiredPermission extends Context.Tag("tilld/Auth/RequiredPermission")<
  RequiredPermission,
  Permission | ReadonlyArray<Permission>
>() {}

/** The permissions that an endpoint's annotations require; empty for a public endpoint. */
export const requiredPermissions = (annotations: Context.Context<never>): ReadonlyArray<Permission> =>
  [Option.getOrElse(Context.getOption(annotations, RequiredPermission), () => [])].flat()
