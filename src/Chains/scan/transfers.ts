/**
 * Decodes the transfers to watched addresses: the Transfer logs of configured tokens, and the native value of
 * transactions. Pure functions, for all who read blocks or transactions; a malformed response is a Left.
 */
import { Either, Predicate, Schema } from "effect"
import { nativeToken } from "../../Domain/Currency.ts"
import type { ChainSettings } from "../../Settings.ts"
import type { AddressSet } from "../ledger/AddressSet.ts"
import type { Transfer } from "../ledger/Transfer.ts"
import { Address, Count, decoder, type FullBlock, Hash, Quantity, transferTopic, Word } from "../rpc/methods.ts"

/** Topics are 32 bytes: `0x` and twelve bytes of zeros stand before an address. */
const addressOffset = 26
const topicLength = 66
const addressLength = 42

/**
 * The recorded currency of a contract's transfers, by the contract's address in lower case. A payment that was created
 * with another contract for the same symbol overrides it: `currencyFor`.
 */
export type Contracts = ReadonlyMap<string, string>

/**
 * The contracts whose transfers are recorded: the configured tokens, those that once were, and wrong tokens that payers
 * confuse with them. A former token, and a wrong token with the name of a currency of the chain, is recorded under its
 * address, so that only the configured contract ever counts as that currency.
 */
export const contractsOf = (
  { chain, tokens, wrongTokens }: ChainSettings,
  former: ReadonlyArray<string>
): Contracts => {
  const currencies = new Set<string>([nativeToken(chain), ...tokens.map((token) => token.symbol)])
  return new Map([
    ...former.map((address) => [address, address] as const),
    ...wrongTokens.map(({ address, name }) => [address, currencies.has(name) ? address : name] as const),
    ...tokens.map(({ address, symbol }) => [address, symbol] as const)
  ])
}

const TransferLog = Schema.Struct({
  address: Address,
  topics: Schema.Tuple(Schema.Literal(transferTopic), Hash, Hash),
  data: Schema.String.pipe(Schema.pattern(/^0x(?:[0-9a-fA-F]{2})*$/)),
  blockNumber: Count,
  blockHash: Hash,
  transactionHash: Hash,
  logIndex: Count,
  removed: Schema.optionalWith(Schema.Boolean, { default: () => false })
})
const decodeTransferLog = decoder(TransferLog)
const decodeWord = decoder(Word)

/** The contract in the position of a token's receipt, lower case; undefined for native money. */
export const contractIn = (position: string): string | undefined => {
  const [kind, , contract] = position.split(":")
  return kind === "log" ? contract : undefined
}

/** A transfer without a position: it is not yet distinguished from others of the same content. */
type Logged = Omit<Transfer, "position">

/**
 * Nodes number the logs of a block differently (erigon issues 13542 and 17249), so two providers may report one log
 * with two indexes. The position is therefore the content of the log, with a count for equal logs of one transaction.
 * It names the contract, whose symbol depends on the configuration.
 */
const positioned = (logged: ReadonlyArray<Logged>): ReadonlyArray<Transfer> => {
  const counts = new Map<string, number>()
  // A log that comes twice in one response is one log. Some nodes number the logs of each transaction from 0.
  const once = new Map(
    logged.map((transfer) => [`${transfer.blockHash} ${transfer.txHash} ${transfer.place}`, transfer] as const)
  )
  return Array.from(once.values(), (transfer) => {
    const content = `log:${transfer.txHash}:${transfer.contract}:${transfer.amount}`
    const key = `${transfer.blockHash} ${transfer.address} ${content}`
    const before = counts.get(key) ?? 0
    counts.set(key, before + 1)
    return { ...transfer, position: `${content}:${before}` }
  })
}

const tokenTransfer = (log: typeof TransferLog.Type, contracts: Contracts): Logged | undefined => {
  const currency = contracts.get(log.address)
  const amount = Either.getOrElse(decodeWord(log.data), () => 0n)
  const [, from, to] = log.topics
  // A transfer to itself is not income.
  const isIncome = amount > 0n && from !== to && to.startsWith(`0x${"0".repeat(24)}`)
  if (currency === undefined || log.removed || !isIncome) return undefined
  return {
    blockNumber: log.blockNumber,
    blockHash: log.blockHash,
    txHash: log.transactionHash,
    place: log.logIndex,
    address: `0x${to.slice(addressOffset)}`,
    sender: `0x${from.slice(addressOffset)}`,
    contract: log.address,
    currency,
    amount
  }
}

/**
 * The token transfers in the response to `eth_getLogs` for the Transfer topic. A log counts when one of `contracts`
 * emitted it with exactly three topics and 32 bytes of data above zero, and it was not removed: anybody can emit the
 * same log from another contract.
 *
 * Only one log in thousands matters, so only those with a watched receiver are decoded; of the others, only what the
 * lookup needs is checked. Left: the response is not a list of logs.
 */
export const tokenTransfers = (
  logs: ReadonlyArray<unknown>,
  contracts: Contracts,
  watched: AddressSet
): Either.Either<ReadonlyArray<Transfer>, string> => {
  const transfers: Array<Logged> = []
  for (const log of logs) {
    const topics = Predicate.isRecord(log) ? log.topics : undefined
    if (!Array.isArray(topics)) return Either.left("a log without topics")
    // Non-fungible tokens share the topic, with the token's id as a fourth.
    if (topics.length !== 3) continue
    const to: unknown = topics[2]
    if (typeof to !== "string" || to.length !== topicLength) return Either.left("a topic that is not 32 bytes")
    if (!watched.has(to, addressOffset)) continue
    const decoded = decodeTransferLog(log)
    if (Either.isLeft(decoded)) return Either.left(decoded.left)
    const transfer = tokenTransfer(decoded.right, contracts)
    if (transfer !== undefined) transfers.push(transfer)
  }
  return Either.right(positioned(transfers))
}

/** The token transfers among all logs of a transaction: events of any kind, which may name a watched address. */
export const transfersAmong = (logs: ReadonlyArray<unknown>, contracts: Contracts, watched: AddressSet) => {
  const isOtherEvent = (log: unknown) =>
    Predicate.isRecord(log) && Array.isArray(log.topics) && String(log.topics[0]).toLowerCase() !== transferTopic
  const asked = logs.filter((log) => !isOtherEvent(log))
  return tokenTransfers(asked, contracts, watched)
}

/** The block hash of the first log that is not of `blocks`, lower case: the logs are of another branch of the chain. */
export const strayBlock = (logs: ReadonlyArray<unknown>, blocks: ReadonlySet<string>): string | undefined => {
  let last: unknown
  for (const log of logs) {
    const hash = Predicate.isRecord(log) ? log.blockHash : undefined
    // Logs come block by block: nearly all of them end here.
    if (hash === last && hash !== undefined) continue
    if (typeof hash !== "string" || !blocks.has(hash.toLowerCase())) return String(hash).slice(0, topicLength)
    last = hash
  }
  return undefined
}

const Payment = Schema.Struct({
  from: Address,
  to: Address,
  value: Quantity,
  hash: Hash,
  blockHash: Hash,
  blockNumber: Count,
  transactionIndex: Count
})
const decodePayment = decoder(Payment)

/**
 * The native transfers of a block's transactions to watched addresses, whether they succeeded or not: a failed
 * transaction has the same value, so the caller must read its receipt. Left: not a list of transactions, or one that
 * names another block.
 */
export const nativeTransfers = (
  { header, transactions }: FullBlock,
  currency: string,
  watched: AddressSet
): Either.Either<ReadonlyArray<Transfer>, string> => {
  const transfers: Array<Transfer> = []
  for (const transaction of transactions) {
    const to = Predicate.isRecord(transaction) ? transaction.to : undefined
    // A contract creation has no receiver; some nodes leave the field out.
    if (to === null || (to === undefined && Predicate.isRecord(transaction))) continue
    if (typeof to !== "string" || to.length !== addressLength) return Either.left("a transaction to an invalid address")
    if (!watched.has(to)) continue
    const decoded = decodePayment(transaction)
    if (Either.isLeft(decoded)) return Either.left(decoded.left)
    const payment = decoded.right
    if (payment.blockHash !== header.hash || payment.blockNumber !== header.number) {
      return Either.left(`transaction ${payment.hash} is listed in block ${header.number} and names another`)
    }
    // A transfer to itself is not income.
    if (payment.value === 0n || payment.from === payment.to) continue
    transfers.push({
      blockNumber: header.number,
      blockHash: header.hash,
      txHash: payment.hash,
      position: `tx:${payment.transactionIndex}`,
      place: payment.transactionIndex,
      address: payment.to,
      sender: payment.from,
      currency,
      amount: payment.value
    })
  }
  return Either.right(transfers)
}
