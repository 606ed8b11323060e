import { Array as Arr, Effect, Either, Schema } from "effect"
import type { PaymentId } from "../Domain/Ids.ts"
import type { BlockRef } from "../Domain/Receipt.ts"
import { Tx } from "../Sql.ts"
import { AddressSet } from "./AddressSet.ts"
import { ask, badAnswer, type Call, decoder, Hash } from "./calls.ts"
import * as Ledger from "./LedgerRepo.ts"
import type { Provider } from "./Providers.ts"
import type { Watch } from "./tick.ts"
import { type Contracts, type Transfer, tokenTransfers } from "./transfers.ts"

/** Receipts that one tick asks about; the next ones wait for the next tick. */
const atOnce = 500
/** Calls in one batch; providers allow from 100 up. */
const callsPerBatch = 50

const decodeVouched = decoder(
  Schema.Struct({
    transactionHash: Hash,
    blockHash: Hash,
    status: Schema.Literal("0x0", "0x1"),
    logs: Schema.Array(Schema.Unknown)
  })
)

/** A transaction's receipt with its logs; undefined where the node has none. */
const findVouched = (hash: string): Call<Either.Either.Right<ReturnType<typeof decodeVouched>> | undefined> => ({
  method: "eth_getTransactionReceipt",
  params: [hash],
  decode: (result) => (result === null ? Either.right(undefined) : decodeVouched(result))
})

/** Any transaction in the right block could be named for a transfer that never was: a token's must be among its logs. */
const isTold = (receipt: Ledger.Unagreed, transfers: ReadonlyArray<Transfer>): boolean =>
  !receipt.position.startsWith("log:") ||
  transfers.some(
    ({ address, amount, currency, position }) =>
      position === receipt.position &&
      address === receipt.address &&
      currency === receipt.currency &&
      amount === receipt.amount
  )

/** Those of the receipts whose transaction a provider has in the same block, where it succeeded and wrote the same. */
const confirmedBy = ({ client }: Provider, contracts: Contracts, receipts: ReadonlyArray<Ledger.Unagreed>) =>
  Effect.gen(function* () {
    const byHash = Arr.groupBy(receipts, (receipt) => receipt.txHash)
    const addresses = new AddressSet()
    for (const { address } of receipts) addresses.add(address)
    const agreed: Array<Ledger.Unagreed> = []
    for (const hashes of Arr.chunksOf(Object.keys(byHash), callsPerBatch)) {
      const found = yield* ask(client, hashes.map(findVouched))
      for (const [hash, vouched] of Arr.zip(hashes, found)) {
        if (vouched === undefined || vouched.transactionHash !== hash || vouched.status === "0x0") continue
        const transfers = yield* Either.match(tokenTransfers(vouched.logs, contracts, addresses), {
          onLeft: (detail) => badAnswer(client, findVouched(hash), detail),
          onRight: Effect.succeed
        })
        const here = (byHash[hash] ?? []).filter((one) => one.blockHash === vouched.blockHash)
        agreed.push(...here.filter((one) => isTold(one, transfers)))
      }
    }
    return agreed
  })

/**
 * Asks a second provider about the receipts that nobody else has vouched for yet: without its word they confirm nothing.
 * While no other provider is healthy, the sole one decides alone, once the receipt is deep enough: it must have it, since
 * another one may have told of it that is put aside by now.
 *
 * Gives whether the sole provider had to decide.
 */
export const agree = Effect.fn("Watcher.agree")(function* (watch: Watch, provider: Provider, head: BlockRef) {
  const { chain, contracts, network, providers, reader, settlement, writer } = watch
  const receipts = yield* Ledger.unagreed(reader, network, atOnce)
  if (receipts.length === 0) return false
  const other = yield* providers.other(provider)
  const asked = other ?? provider
  const due =
    other === undefined
      ? receipts.filter((receipt) => head.number - receipt.blockNumber + 1 >= chain.confirmations)
      : receipts
  const agreed = yield* Effect.catchAll(confirmedBy(asked, contracts, due), (error) =>
    Effect.as(providers.failed(asked, error), [])
  )
  if (agreed.length > 0) {
    yield* writer.write(
      Effect.gen(function* () {
        const touched = new Set<PaymentId>()
        for (const receipt of agreed) {
          yield* Ledger.setAgreed(network, receipt)
          if (receipt.payment !== undefined) touched.add(receipt.payment)
        }
        // What has been read since is the watcher's own doing: nobody else moves the head.
        const scan = yield* Ledger.scan(yield* Tx, network)
        if (scan !== undefined) yield* settlement.settle({ network, head: scan.head }, touched)
      })
    )
  }
  return other === undefined
})
