import type { AnyOperation, Needs } from "../Auth/operation.ts"
import type { Writer } from "../Sql.ts"
import { type Handler, handlerOf } from "./controlHandler.ts"
import * as DeliveryHandlers from "./deliveryHandlers.ts"
import { ListDeliveries, Redeliver, RedeliverRange, SendTest, ShowDelivery } from "./deliveryRequests.ts"
import { allOperations, type ServicesFor } from "./operations.ts"
import * as PaymentHandlers from "./paymentHandlers.ts"
import * as PaymentRequests from "./paymentRequests.ts"

type PlainServices = ServicesFor["store"]
type SealedServices = ServicesFor["secrets"]
type SendingServices = ServicesFor["sending"]
type ChainedServices = ServicesFor["chains"]

/** Handlers of the operations that need this: `allOperations` is typed so that they have its services. */
const handlersOf = <N extends Needs>(needs: N) =>
  allOperations.flatMap(
    (each): ReadonlyArray<[string, Handler<ServicesFor[N] | Writer>]> =>
      each.needs === needs ? [[each.name, handlerOf<ServicesFor[N]>(each as AnyOperation)]] : []
  )

/** Handlers that need no secrets, by the tag of their request. */
export const plain: ReadonlyMap<string, Handler<PlainServices>> = new Map<string, Handler<PlainServices>>([
  ...handlersOf("store"),
  [PaymentRequests.ListPayments._tag, PaymentHandlers.listPayments],
  [PaymentRequests.ShowPayment._tag, PaymentHandlers.showPayment],
  [PaymentRequests.ListExceptions._tag, PaymentHandlers.listExceptions],
  [PaymentRequests.RefundedPayment._tag, PaymentHandlers.refundedPayment],
  [PaymentRequests.CancelPayment._tag, PaymentHandlers.cancelPaymentHandler],
  [PaymentRequests.AbandonPayments._tag, PaymentHandlers.abandonPayments],
  [ListDeliveries._tag, DeliveryHandlers.listDeliveriesHandler],
  [ShowDelivery._tag, DeliveryHandlers.showDeliveryHandler],
  [Redeliver._tag, DeliveryHandlers.redeliverHandler],
  [RedeliverRange._tag, DeliveryHandlers.redeliverRange]
])

/** Handlers that also need the master key, which an operator at a shell may not have. */
export const sealed: ReadonlyMap<string, Handler<SealedServices>> = new Map<string, Handler<SealedServices>>([
  ...handlersOf("secrets")
])

/** Handlers that read the chains. */
export const chained: ReadonlyMap<string, Handler<ChainedServices>> = new Map<string, Handler<ChainedServices>>([
  [PaymentRequests.AcceptPayment._tag, PaymentHandlers.acceptPayment],
  ...handlersOf("chains")
])

/** Handlers that call a merchant's server, or check what may be called. */
export const sending: ReadonlyMap<string, Handler<SendingServices>> = new Map<string, Handler<SendingServices>>([
  [SendTest._tag, DeliveryHandlers.sendTestHandler],
  ...handlersOf("sending")
])

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
