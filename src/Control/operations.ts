/** All operations: what the control sockets serve. */
import type { Effect } from "effect"
import { changeAccount, createAccount, listAccounts } from "../Auth/accountOperations.ts"
import { changeKey, createKey, listKeys, makeLoginLink, revokeKey, rollKey } from "../Auth/keyOperations.ts"
import { changeShop, showShop } from "../Auth/shopOperations.ts"
import { showLedger } from "../Books/ledgerOperation.ts"
import { claimTransaction, listTokens, rescanBlocks } from "../Chains/repairOperations.ts"
import { confirmWallets, readStatus, showAlertSecret, testAlert } from "../Conditions/operations.ts"
import { cancelOpenInvoice, listInvoices, showInvoice } from "../Invoices/invoiceOperations.ts"
import { listAudit } from "../Operations/auditOperation.ts"
import type { AnyOperation } from "../Operations/operation.ts"
import * as Addresses from "../Payments/addresses/addressOperations.ts"
import {
  acceptMoney,
  dropUnmade,
  listExceptions,
  listRefunds,
  refundMoney
} from "../Payments/decisions/decisionOperations.ts"
import { accountRefunds, beginRefunds, owedRefunds } from "../Payments/decisions/sweepRefunds.ts"
import { abandonPayments, cancelOpenPayment, listPayments, showPayment } from "../Payments/paymentOperations.ts"
import {
  listDeliveries,
  redeliverOne,
  redeliverRange,
  sendTestDelivery,
  showDelivery
} from "../Webhooks/deliveryOperations.ts"
import { changeEndpoint, deleteEndpoint, listEndpoints, registerEndpoint } from "../Webhooks/endpointOperations.ts"
import { rotateSecret, showSecret } from "../Webhooks/secretOperations.ts"

const operations = [
  ...[createKey, listKeys, rollKey, changeKey, revokeKey],
  ...[Addresses.challengeWallet, Addresses.checkProof],
  ...[createAccount, listAccounts, changeAccount, showShop, changeShop, makeLoginLink, listAudit],
  ...[showAlertSecret, testAlert, confirmWallets],
  ...[showSecret, rotateSecret, listEndpoints, registerEndpoint, changeEndpoint, deleteEndpoint],
  ...[listDeliveries, showDelivery, redeliverOne, redeliverRange, sendTestDelivery],
  ...[listInvoices, showInvoice, cancelOpenInvoice],
  ...[listPayments, showPayment, cancelOpenPayment, abandonPayments, listExceptions, acceptMoney, refundMoney],
  ...[listRefunds, dropUnmade, owedRefunds, beginRefunds, accountRefunds],
  showLedger,
  ...[rescanBlocks, claimTransaction, listTokens, readStatus],
  ...[Addresses.jumpAddresses, Addresses.listReceived, Addresses.readChain, Addresses.recordCollected]
]

/** All services that operations need. */
export type ControlServices = Effect.Effect.Context<ReturnType<(typeof operations)[number]["run"]>>

export const allOperations: ReadonlyArray<AnyOperation<ControlServices>> = operations
