/**
 * The table of this API: what shop plugins call, as BTCPay Server's Greenfield API v1 has it. Each operation names the permission
 * that it needs; `:store` must be the key's own. The kernel of `Http/` serves it with everything that every request has.
 */
import type { IncomingHttpHeaders } from "node:http"
import { Effect, Either, Schema } from "effect"
import { type ApiError, invalid } from "../Domain/ApiError.ts"
import type { ApiKey } from "../Domain/ApiKey.ts"
import { allows, type PluginPermission, storeIdOf } from "../Domain/Plugin.ts"
import type { HttpAnswer } from "../Http/Handler.ts"
import type { Match, Router, ServedOperation } from "../Http/routes.ts"
import { fieldProblemsOf, foundBy } from "../Http/validationProblems.ts"
import { parametersIn } from "../lib/parameters.ts"
import type { SettingsShape } from "../Settings.ts"
import type { CommitWith, Db, StoreUnavailable } from "../Sql.ts"
import { missingPermission, noSuch } from "./errors.ts"
import { readInvoice } from "./readInvoice.ts"

export type Answered = Effect.Effect<unknown, ApiError | StoreUnavailable>

/** The key of `Authorization: token KEY`. */
export const presentedKey = ({ authorization = "" }: IncomingHttpHeaders): string | undefined =>
  /^token +(\S+)$/i.exec(authorization)?.[1]

/** A request that passed the checks. */
export interface Asking<Body> {
  readonly key: ApiKey
  /** The key as it was sent. */
  readonly presented: string | undefined
  readonly path: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  readonly body: Body
  /** Stores the answer of a request with an idempotency key, in the transaction of its effect. */
  readonly storeReplay: CommitWith<unknown> | undefined
}

/** The invoice of a request's path, which must be of its store. */
export const findInvoice = Effect.fnUntraced(function* (
  reader: Db,
  settings: SettingsShape,
  { key, path }: Pick<Asking<unknown>, "key" | "path">
) {
  const read = yield* readInvoice(reader, settings, path["invoice"] ?? "")
  return read?.invoice.account === key.account && read.invoice.mode === key.mode ? read : yield* noSuch("invoice")
})

export interface PluginOperation {
  readonly method: "GET" | "POST" | "PUT" | "DELETE"
  /** Below `/api/v1/`. */
  readonly path: string
  /** Undefined where any plugin's key may. */
  readonly permission: PluginPermission | undefined
  readonly takesBody: boolean
  readonly run: (asking: Asking<unknown>) => Answered
}

/** `null` means absent, at every level but within metadata. */
const withoutNulls = (value: unknown, depth = 0): unknown => {
  if (typeof value !== "object" || value === null || Array.isArray(value) || depth > 2) return value
  const entries = Object.entries(value).filter(([, each]) => each !== null)
  const inner = (key: string, each: unknown) => (key === "metadata" ? each : withoutNulls(each, depth + 1))
  return Object.fromEntries(entries.map(([key, each]) => [key, inner(key, each)]))
}

/** An operation without a body. */
export const pluginOperation = (
  method: PluginOperation["method"],
  path: string,
  permission: PluginPermission | undefined,
  run: (asking: Asking<unknown>) => Answered
): PluginOperation => ({ method, path, permission, takesBody: false, run })

/**
 * An operation whose body a schema decodes: fields that it does not name are ignored at every level. Only the first problem is
 * told: a long list of wrong values would take the event loop.
 */
export const withBody = <A, I>(
  method: PluginOperation["method"],
  path: string,
  permission: PluginPermission,
  schema: Schema.Schema<A, I>,
  run: (asking: Asking<A>) => Answered
): PluginOperation => {
  const decode = Schema.decodeUnknownEither(schema)
  const decoded = (asking: Asking<unknown>): Answered =>
    Either.match(decode(withoutNulls(asking.body)), {
      onLeft: (error) => invalid(fieldProblemsOf([foundBy(error, { kind: "field", known: [] }, 0)])),
      onRight: (body) => run({ ...asking, body })
    })
  return { method, path, permission, takesBody: true, run: decoded }
}

const answerOf = (body: unknown): HttpAnswer<unknown> => ({ body })

/** What the permission and the store of a request leave of it. */
const served = ({ path: pattern, permission, run, takesBody }: PluginOperation): ServedOperation => ({
  permissions: [],
  takesBody,
  redact: () => '"[redacted]"',
  successStatus: 200,
  handle: ({ headers, key, path, payload, search, storeReplay }) =>
    Effect.suspend((): Answered => {
      if (key === undefined) return Effect.dieMessage(`${pattern} needs a key`)
      if (path["store"] !== undefined && path["store"] !== storeIdOf(key)) {
        return missingPermission(permission ?? "btcpay.store.canviewstoresettings")
      }
      if (permission !== undefined && !allows(key, permission)) return missingPermission(permission)
      const kept = storeReplay && ((body: unknown) => storeReplay(answerOf(body)))
      const query = new URLSearchParams(search)
      return run({ key, presented: presentedKey(headers), path, query, body: payload, storeReplay: kept })
    }).pipe(Effect.map(answerOf))
})

/** Finds the operations of a path. */
export const routerOf = (operations: ReadonlyArray<PluginOperation>): Router => {
  const routes = new Map<string, { readonly pattern: ReadonlyArray<string>; readonly route: Match["route"] }>()
  for (const one of operations) {
    const path = `/api/v1/${one.path}`
    const both = new Map([...(routes.get(path)?.route.operations ?? []), [one.method, served(one)] as const])
    const get = both.get("GET")
    if (get !== undefined) both.set("HEAD", get)
    routes.set(path, { pattern: path.split("/"), route: { path, isPublic: false, operations: both } })
  }
  return (path) => {
    const segments = path.split("/")
    for (const { pattern, route } of routes.values()) {
      const params = parametersIn(pattern, segments)
      if (params !== undefined) return { route, params }
    }
    return undefined
  }
}
