import { randomBytes } from "node:crypto"
import type { IncomingHttpHeaders } from "node:http"
import { Context, Effect, Layer, Redacted } from "effect"
import { request as send } from "undici"
import { appLayer } from "../../src/App.ts"
import { Accounts, defaultAccount, Keys } from "../../src/Auth.ts"
import { type Permission, permissions } from "../../src/Domain/ApiKey.ts"
import type { Mode } from "../../src/Domain/Chain.ts"
import { type AccountId, newAccountId } from "../../src/Domain/Ids.ts"
import { HttpServer } from "../../src/Server.ts"
import type { SettingsShape } from "../../src/Settings.ts"
import { httpAgent } from "./loopback.ts"
import { testSettings } from "./settings.ts"
import { temporaryDatabase } from "./store.ts"

export interface Sent {
  readonly key?: string
  readonly headers?: Readonly<Record<string, string | ReadonlyArray<string>>>
  /** Sent as JSON. */
  readonly json?: unknown
  /** Sent as it is. */
  readonly body?: string | Uint8Array
}

export interface Answered {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: what a test looks into, field by field
  readonly body: any
}

/** The problems of a refusal by the field that each is about. */
export const problemsIn = ({ body }: Answered): Record<string, string> =>
  Object.fromEntries(body.error.details.map(({ message, path }: { message: string; path: string }) => [path, message]))

const bytesOf = ({ body, json }: Sent) => (json === undefined ? body : JSON.stringify(json))

/** Sends one request over HTTP, and reads its answer to the end. */
export type Call = (method: string, path: string, sent?: Sent) => Effect.Effect<Answered>

/** A client of the server at `base`, that keeps its connections until the scope closes. */
export const makeClient = (base: string) =>
  Effect.map(
    httpAgent,
    (agent): Call =>
      (method, path, sent = {}) =>
        Effect.promise(async (): Promise<Answered> => {
          const response = await send(`${base}${path}`, {
            dispatcher: agent,
            method: method as "GET",
            headers: {
              ...(sent.key === undefined ? {} : { "x-api-key": sent.key }),
              ...(sent.json === undefined ? {} : { "content-type": "application/json" }),
              ...Object.fromEntries(Object.entries(sent.headers ?? {}).map(([k, v]) => [k, [v].flat()]))
            },
            body: bytesOf(sent) ?? null
          })
          const text = await response.body.text()
          return {
            status: response.statusCode,
            headers: response.headers,
            text,
            body: response.headers["content-type"] === "application/json" && text !== "" ? JSON.parse(text) : undefined
          }
        })
  )

/** A server, and a client that keeps its connections for as long as the test. */
export class TestApi extends Context.Tag("test/TestApi")<
  TestApi,
  {
    readonly host: string
    readonly port: number
    readonly call: Call
    /** A key of the default account, or of another one. */
    readonly newKey: (mode?: Mode, allowed?: ReadonlyArray<Permission>, account?: AccountId) => Effect.Effect<string>
    /** An account that uses the wallets of the configuration. */
    readonly newAccount: (name: string) => Effect.Effect<AccountId>
  }
>() {
  static readonly layer = Layer.scoped(
    TestApi,
    Effect.gen(function* () {
      const { address } = yield* HttpServer
      const keys = yield* Keys
      const call = yield* makeClient(`http://${address.host}:${address.port}`)
      const accounts = yield* Accounts
      const newAccount = (name: string) =>
        Effect.map(Effect.orDie(accounts.create({ id: newAccountId(), name, wallets: [] })), ({ id }) => id)
      const newKey = (
        mode: Mode = "test",
        allowed: ReadonlyArray<Permission> = permissions,
        account = defaultAccount
      ) =>
        keys.create({ account, mode, name: "test", permissions: allowed, expiresIn: undefined }).pipe(
          Effect.map(({ key }) => Redacted.value(key)),
          Effect.orDie
        )
      return { ...address, call, newAccount, newKey }
    })
  )
}

const masterKey = randomBytes(32).toString("base64")

/** The whole daemon but its workers, on a database of its own, unless one is given, and any free port. */
export const testApp = (over: Partial<SettingsShape> = {}, database = temporaryDatabase) =>
  TestApi.layer.pipe(
    Layer.provideMerge(HttpServer.layer),
    Layer.provideMerge(
      Layer.unwrapScoped(
        Effect.map(database, (path) =>
          appLayer(testSettings(path, { log: { level: "error", format: "json" }, ...over }), {
            TILLD_MASTER_KEY: masterKey
          })
        )
      )
    )
  )

/** The API, and a key of the default account and the test mode. */
export const apiWithKey = Effect.flatMap(TestApi, (api) => Effect.map(api.newKey(), (key) => ({ api, key })))
