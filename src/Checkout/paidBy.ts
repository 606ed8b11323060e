import type { ChainName } from "../Domain/Chain.ts"
import type { Payment } from "../Domain/Payment.ts"
import type { Receipt } from "../Domain/Receipt.ts"
import { counted } from "../Payments/statusMachine.ts"

/** A transaction that paid for a payment. */
export interface PaidBy {
  readonly txHash: string
  /** Undefined where the chain is no longer configured. */
  readonly chainId: number | undefined
  /** Base units of the payment's currency; undefined for other money that the shop has accepted. */
  readonly amount: bigint | undefined
}

/** A page shows no more. */
const most = 10

/** The transactions that make up what a confirmed payment received, in chain order, and the one that completed it. */
export const paidByOf = (
  payment: Payment,
  receipts: ReadonlyArray<Receipt>,
  chainIdOf: (chain: ChainName) => number | undefined
): ReadonlyArray<PaidBy> => {
  const { amountReceived = 0n, chain, txHash } = payment
  const found = new Map<string, PaidBy & { readonly amount: bigint }>()
  let reached = 0n
  for (const receipt of counted(payment, receipts)) {
    // What came after that is further money.
    if (reached >= amountReceived) break
    reached += receipt.amount
    if (receipt.txHash === undefined) continue
    const before = found.get(receipt.txHash)?.amount ?? 0n
    found.set(receipt.txHash, { txHash: receipt.txHash, chainId: chainIdOf(chain), amount: before + receipt.amount })
  }
  const accepted = txHash === undefined || found.has(txHash) ? [] : [txHash]
  const chainOf = (hash: string) => receipts.find((receipt) => receipt.txHash === hash)?.chain ?? chain
  return [
    ...accepted.map((hash) => ({ txHash: hash, chainId: chainIdOf(chainOf(hash)), amount: undefined })),
    ...found.values()
  ].slice(0, most)
}
