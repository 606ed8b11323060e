/**
 * The API of shop plugins: the part of BTCPay Server's Greenfield API v1 that plugins for shop systems and SDKs call, so that they
 * work unchanged. A store is an account in one mode. Loaded with the first request below `/api/v1`.
 */
import { Effect, Either } from "effect"
import { shopOf } from "./Auth/shops.ts"
import { isPluginKey } from "./Domain/ApiKey.ts"
import { pluginErrorReply, refusal } from "./Greenfield/errors.ts"
import { invoiceOperations } from "./Greenfield/invoices.ts"
import { presentedKey, routerOf } from "./Greenfield/operations.ts"
import { pullPaymentOperations } from "./Greenfield/pullPayments.ts"
import { storeOperations } from "./Greenfield/stores.ts"
import { webhookOperations } from "./Greenfield/webhooks.ts"
import type { NoteRequest } from "./Http/RequestLog.ts"
import type { Observe } from "./Http/requestMetrics.ts"
import { type Dialect, makeRespond, type Respond } from "./Http/respond.ts"
import type { Turns } from "./Http/turns.ts"
import { anyRow, Reader } from "./Sql.ts"

const notFound = (message: string) => Either.left(refusal("NOT_FOUND", { code: "not-found" }, message))
const isOff = notFound("Turn plugins on: tilld accounts shop --plugins on.")
const isOwn = notFound(
  "This is a key of tilld's own API: connect the shop by its button, or make a plugin's key in the portal."
)

/** Answers the requests below `/api/v1`. While no account has turned plugins on, `own` answers: there is no such path. */
export const makeGreenfield = Effect.fnUntraced(function* (
  own: Respond,
  observe: Observe,
  turns: Turns,
  note: NoteRequest
) {
  const reader = yield* Reader
  const operations = [
    ...(yield* storeOperations),
    ...(yield* invoiceOperations),
    ...(yield* pullPaymentOperations),
    ...(yield* webhookOperations)
  ]
  const dialect: Dialect = {
    keyOf: ({ headers }) => presentedKey(headers),
    admit: (key) =>
      isPluginKey(key)
        ? Effect.flatMap(shopOf(reader, key.account), ({ plugins }) => (plugins === "on" ? Either.right(key) : isOff))
        : isOwn,
    errorReply: pluginErrorReply
  }
  const answer = yield* makeRespond(routerOf(operations), observe, turns, undefined, note, dialect)
  // A store that cannot be read is answered as such.
  const isOn = Effect.orElseSucceed(anyRow(reader, "SELECT 1 FROM shops WHERE plugins = 'on'"), () => true)
  const respond: Respond = (...request) => Effect.flatMap(isOn, (on) => (on ? answer : own)(...request))
  return respond
})
