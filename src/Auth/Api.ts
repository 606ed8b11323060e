import { HttpApiEndpoint, HttpApiGroup, HttpApiMiddleware, HttpApiSecurity } from "@effect/platform"
import { Context, Option } from "effect"
import { type ErrorCode, errorBodies, idempotencyErrors, unauthorizedBody } from "../Domain/ApiError.ts"
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

/** A group of endpoints for keys. */
export const keyedGroup = <const Id extends string>(id: Id) =>
  HttpApiGroup.make(id).addError(errorBodies("VALIDATION_ERROR", "RATE_LIMITED")).middleware(ApiKeyAuth)

/**
 * Endpoints for keys with permissions: `get` needs `read`, the others `write`. Behind the path come the codes of an endpoint's
 * own refusals. `post` and `patch` take an `Idempotency-Key`.
 */
export const endpointsFor = (read: Permission, write: Permission) => ({
  get: <const Name extends string>(name: Name, path: `/${string}`, ...refusals: ReadonlyArray<ErrorCode>) =>
    HttpApiEndpoint.get(name, path)
      .addError(errorBodies(...refusals))
      .annotate(RequiredPermission, read),
  post: <const Name extends string>(name: Name, path: `/${string}`, ...refusals: ReadonlyArray<ErrorCode>) =>
    HttpApiEndpoint.post(name, path)
      .addError(errorBodies(...refusals))
      .addError(idempotencyErrors)
      .annotate(RequiredPermission, write),
  patch: <const Name extends string>(name: Name, path: `/${string}`, ...refusals: ReadonlyArray<ErrorCode>) =>
    HttpApiEndpoint.patch(name, path)
      .addError(errorBodies(...refusals))
      .addError(idempotencyErrors)
      .annotate(RequiredPermission, write),
  del: <const Name extends string>(name: Name, path: `/${string}`, ...refusals: ReadonlyArray<ErrorCode>) =>
    HttpApiEndpoint.del(name, path)
      .addError(errorBodies(...refusals))
      .annotate(RequiredPermission, write)
})

/** The permissions that an endpoint's annotations require; empty for a public endpoint. */
export const requiredPermissions = (annotations: Context.Context<never>): ReadonlyArray<Permission> =>
  [Option.getOrElse(Context.getOption(annotations, RequiredPermission), () => [])].flat()
