/** All operations: what the control sockets serve, and commands carry out where no daemon runs. */

import { readHealth } from "../Admin/healthOperation.ts"
import { listAlerts, showAlertSecret, testAlert } from "../Alerts/alertOperations.ts"
import { changeAccount, createAccount, listAccounts } from "../Auth/accountOperations.ts"
import { changeKey, createKey, listKeys, revokeKey, rollKey } from "../Auth/keyOperations.ts"
import { makeLoginLink } from "../Auth/loginOperation.ts"
import { changeShop, showShop } from "../Auth/shopOperations.ts"
import type { Accounts, Keys } from "../Auth.ts"
import { showLedger } from "../Books/ledgerOperation.ts"
import type { Settlement } from "../Chains/ledger/SettlementTag.ts"
import type { WatchedAddresses } from "../Chains/ledger/WatchedAddresses.ts"
import type { Networks } from "../Chains/providers/Networks.ts"
import { claimTransaction, listTokens, rescanBlocks } from "../Chains/repairOperations.ts"
import type { Chains } from "../Chains.ts"
import type { Outbox } from "../Events/Outbox.ts"
import { cancelOpenInvoice, listInvoices, showInvoice } from "../Invoices/invoiceOperations.ts"
import { listAudit } from "../Operations/auditOperation.ts"
import type { AnyOperation, Needs } from "../Operations/operation.ts"
import * as Addresses from "../Payments/addresses/addressOperations.ts"
import type { Jumps } from "../Payments/addresses/numbering.ts"
import {
  acceptMoney,
  dropUnmade,
  listExceptions,
  listRefunds,
  refundMoney
} from "../Payments/decisions/decisionOperations.ts"
import { accountRefunds, beginRefunds, owedRefunds } from "../Payments/decisions/sweepRefunds.ts"
import { abandonPayments, cancelOpenPayment, listPayments, showPayment } from "../Payments/paymentOperations.ts"
import type { Secrets } from "../Secrets.ts"
import type { Settings } from "../Settings.ts"
import type { Reader, StoreHealth, Writer } from "../Sql.ts"
import {
  listDeliveries,
  redeliverOne,
  redeliverRange,
  sendTestDelivery,
  showDelivery
} from "../Webhooks/deliveryOperations.ts"
import { changeEndpoint, deleteEndpoint, listEndpoints, registerEndpoint } from "../Webhooks/endpointOperations.ts"
import type { DeliveryBell } from "../Webhooks/queue/DeliveryBell.ts"
import type { SigningKeys } from "../Webhooks/SigningKeys.ts"
import { rotateSecret, showSecret } from "../Webhooks/secretOperations.ts"
import type { DeliveryClient } from "../Webhooks/transport/DeliveryClient.ts"
import type { Webhooks } from "../Webhooks.ts"

/** The services that operations have, by what they need. */
export interface ServicesFor extends Record<Needs, unknown> {
  readonly store: Accounts | Jumps | DeliveryBell | Keys | Outbox | Reader | Settings | Settlement | Writer
  readonly secrets: ServicesFor["store"] | Secrets | SigningKeys
  readonly chains: Chains | DeliveryBell | WatchedAddresses | Networks | Outbox | Reader | Settings | Writer
  readonly sending: Accounts | DeliveryClient | Reader | SigningKeys | Webhooks | Writer
  readonly daemon: Chains | Settings | StoreHealth
}

/** All services that operations need. */
export type ControlServices = ServicesFor[Needs]

type Served = { readonly [N in Needs]: AnyOperation<ServicesFor[N], N> }[Needs]

export const allOperations: ReadonlyArray<Served> = [
  ...[createKey, listKeys, rollKey, changeKey, revokeKey],
  ...[Addresses.challengeWallet, Addresses.checkProof],
  ...[createAccount, listAccounts, changeAccount, showShop, changeShop, makeLoginLink, listAudit],
  ...[listAlerts, showAlertSecret, testAlert],
  ...[showSecret, rotateSecret, listEndpoints, registerEndpoint, changeEndpoint, deleteEndpoint],
  ...[listDeliveries, showDelivery, redeliverOne, redeliverRange, sendTestDelivery],
  ...[listInvoices, showInvoice, cancelOpenInvoice],
  ...[listPayments, showPayment, cancelOpenPayment, abandonPayments, listExceptions, acceptMoney, refundMoney],
  ...[listRefunds, dropUnmade, owedRefunds, beginRefunds, accountRefunds],
  showLedger,
  ...[rescanBlocks, claimTransaction, listTokens, readHealth],
  ...[Addresses.jumpAddresses, Addresses.listReceived, Addresses.readChain, Addresses.recordCollected]
]
