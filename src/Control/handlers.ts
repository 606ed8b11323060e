import type { AnyOperation, Needs } from "../Auth/operation.ts"
import type { Writer } from "../Sql.ts"
import { type Handler, handlerOf } from "./controlHandler.ts"
import { allOperations, type ServicesFor } from "./operations.ts"

/** Handlers of the operations that need this: `allOperations` is typed so that they have its services. */
const handlersOf = <N extends Needs>(needs: N) =>
  new Map(
    allOperations.flatMap(
      (each): ReadonlyArray<[string, Handler<ServicesFor[N] | Writer>]> =>
        each.needs === needs ? [[each.name, handlerOf<ServicesFor[N]>(each as AnyOperation)]] : []
    )
  )

/** Handlers that need no secrets, by the name of their operation. */
export const plain = handlersOf("store")

/** Handlers that also need the master key, which an operator at a shell may not have. */
export const sealed = handlersOf("secrets")

/** Handlers that read the chains. */
export const chained = handlersOf("chains")

/** Handlers that call a merchant's server, or check what may be called. */
export const sending = handlersOf("sending")

/** All services that the handlers need. */
export type ControlServices = ServicesFor[Needs]

/** All handlers, as the daemon serves them. */
export const handlers: ReadonlyMap<string, Handler<ControlServices>> = new Map<string, Handler<ControlServices>>([
  ...plain,
  ...sealed,
  ...chained,
  ...sending,
  ...handlersOf("daemon")
])
