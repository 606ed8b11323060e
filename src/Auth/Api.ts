import { HttpApiMiddleware, HttpApiSecurity } from "@effect/platform"
import { Context, Option } from "effect"
import { unauthorizedBody } from "../Domain/ApiError.ts"
import type { ApiKey, Permission } from "../Domain/ApiKey.ts"

/** The key that a request was made with: whose payments, webhooks and quotes it sees, and in which mode. */
export class CurrentKey extends Context.Tag("tilld/Auth/CurrentKey")<CurrentKey, ApiKey>() {}

/** Every request carries `X-API-Key`. */
export class ApiKeyAuth extends HttpApiMiddleware.Tag<ApiKeyAuth>()("tilld/Auth/ApiKeyAuth", {
  provides: CurrentKey,
  failure: unauthorizedBody,
  security: { apiKey: HttpApiSecurity.apiKey({ in: "header", key: "X-API-Key" }) }
}) {}

/** Annotates an endpoint with the permission that a key needs for it, or with several of which it needs each. */
export class RequiredPermission extends Context.Tag("tilld/Auth/RequiredPermission")<
  RequiredPermission,
  Permission | ReadonlyArray<Permission>
>() {}

/** What the annotations of an endpoint ask for: nothing where it is open to everybody. */
export const requiredPermissions = (annotations: Context.Context<never>): ReadonlyArray<Permission> =>
  [Option.getOrElse(Context.getOption(annotations, RequiredPermission), () => [])].flat()
