import { changeKey, createKey, listKeys, revokeKey, rollKey } from "../Auth/keyOperations.ts"
import type { Accounts, Keys } from "../Auth.ts"
import type { Settlement } from "../Chains/ledger/SettlementTag.ts"
import type { WatchedAddresses } from "../Chains/ledger/WatchedAddresses.ts"
import type { Networks } from "../Chains/providers/Networks.ts"
import type { Chains } from "../Chains.ts"
import type { Outbox } from "../Events/Outbox.ts"
import type { Jumps } from "../Payments/addresses/numberingJumps.ts"
import type { Secrets } from "../Secrets.ts"
import type { Settings } from "../Settings.ts"
import type { Reader, StoreHealth, Writer } from "../Sql.ts"
import type { DeliveryBell } from "../Webhooks/queue/DeliveryBell.ts"
import type { SigningKeys } from "../Webhooks/SigningKeys.ts"
import type { DeliveryClient } from "../Webhooks/transport/DeliveryClient.ts"
import type { Webhooks } from "../Webhooks.ts"
import * as AccountHandlers from "./accountHandlers.ts"
import { listAlerts, showAlertSecret, testAlert } from "./alertHandlers.ts"
import { ListAlerts, ShowAlertSecret, TestAlert } from "./alertRequests.ts"
import { listAudit } from "./auditHandler.ts"
import { ListAudit } from "./auditRequest.ts"
import { type Handler, handlerOf } from "./controlHandler.ts"
import * as Requests from "./controlRequests.ts"
import * as DeliveryHandlers from "./deliveryHandlers.ts"
import { ListDeliveries, Redeliver, RedeliverRange, SendTest, ShowDelivery } from "./deliveryRequests.ts"
import { changeEndpoint, listEndpoints } from "./endpointHandlers.ts"
import { ChangeEndpoint, ListEndpoints } from "./endpointRequests.ts"
import { readHealth } from "./healthHandler.ts"
import { ReadHealth } from "./healthRequest.ts"
import { makeLoginLink } from "./loginHandler.ts"
import { MakeLoginLink } from "./loginRequest.ts"
import * as PaymentHandlers from "./paymentHandlers.ts"
import * as PaymentRequests from "./paymentRequests.ts"
import * as RepairHandlers from "./repairHandlers.ts"
import { changeShopHandler, showShopHandler } from "./shopHandlers.ts"
import { ChangeShop, ShowShop } from "./shopRequests.ts"

type PlainServices = Accounts | Jumps | DeliveryBell | Keys | Outbox | Reader | Settings | Settlement | Writer
type SealedServices = PlainServices | Secrets | SigningKeys
type SendingServices = DeliveryClient | Reader | SigningKeys | Webhooks | Writer
type ChainedServices = Chains | DeliveryBell | WatchedAddresses | Networks | Outbox | Reader | Settings | Writer

/** Handlers that need no secrets, by the tag of their request. */
export const plain: ReadonlyMap<string, Handler<PlainServices>> = new Map<string, Handler<PlainServices>>([
  ...[createKey, listKeys, rollKey, changeKey, revokeKey].map((each) => [each.name, handlerOf(each)] as const),
  [Requests.ListAccounts._tag, AccountHandlers.listAccounts],
  [Requests.ChangeAccount._tag, AccountHandlers.changeAccountHandler],
  [ShowShop._tag, showShopHandler],
  [ChangeShop._tag, changeShopHandler],
  [ListAudit._tag, listAudit],
  [ListAlerts._tag, listAlerts],
  [MakeLoginLink._tag, makeLoginLink],
  [Requests.ListTokens._tag, PaymentHandlers.listTokens],
  [PaymentRequests.ListPayments._tag, PaymentHandlers.listPayments],
  [PaymentRequests.ShowPayment._tag, PaymentHandlers.showPayment],
  [PaymentRequests.ListExceptions._tag, PaymentHandlers.listExceptions],
  [PaymentRequests.RefundedPayment._tag, PaymentHandlers.refundedPayment],
  [PaymentRequests.CancelPayment._tag, PaymentHandlers.cancelPaymentHandler],
  [PaymentRequests.AbandonPayments._tag, PaymentHandlers.abandonPayments],
  [Requests.JumpAddresses._tag, PaymentHandlers.jumpAddresses],
  [ListEndpoints._tag, listEndpoints],
  [ListDeliveries._tag, DeliveryHandlers.listDeliveriesHandler],
  [ShowDelivery._tag, DeliveryHandlers.showDeliveryHandler],
  [Redeliver._tag, DeliveryHandlers.redeliverHandler],
  [RedeliverRange._tag, DeliveryHandlers.redeliverRange]
])

/** Handlers that also need the master key, which an operator at a shell may not have. */
export const sealed: ReadonlyMap<string, Handler<SealedServices>> = new Map<string, Handler<SealedServices>>([
  [Requests.CreateAccount._tag, AccountHandlers.createAccount],
  [Requests.ShowSecret._tag, AccountHandlers.showSecret],
  [Requests.RotateSecret._tag, AccountHandlers.rotateSecret],
  [ShowAlertSecret._tag, showAlertSecret],
  [TestAlert._tag, testAlert]
])

/** Handlers that read the chains. */
export const chained: ReadonlyMap<string, Handler<ChainedServices>> = new Map<string, Handler<ChainedServices>>([
  [PaymentRequests.AcceptPayment._tag, PaymentHandlers.acceptPayment],
  [Requests.Rescan._tag, RepairHandlers.rescanBlocks],
  [Requests.Claim._tag, RepairHandlers.claimTransaction]
])

/** Handlers that call a merchant's server, or check what may be called. */
export const sending: ReadonlyMap<string, Handler<SendingServices>> = new Map<string, Handler<SendingServices>>([
  [SendTest._tag, DeliveryHandlers.sendTestHandler],
  [ChangeEndpoint._tag, changeEndpoint]
])

/** Handlers that only a daemon has. */
const running: ReadonlyMap<string, Handler<Chains | Settings | StoreHealth>> = new Map([[ReadHealth._tag, readHealth]])

/** All services that the handlers need. */
export type ControlServices = SealedServices | ChainedServices | SendingServices | StoreHealth

/** All handlers, as the daemon serves them. */
export const handlers: ReadonlyMap<string, Handler<ControlServices>> = new Map<string, Handler<ControlServices>>([
  ...plain,
  ...sealed,
  ...chained,
  ...sending,
  ...running
])
