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

/** What a transfer by a contract is recorded as, by the contract's address in lower case. */
export type Contracts = ReadonlyMap<string, string>

/**
 * The contracts whose transfers are looked at: the tokens of the configuration, and what is known to be taken for one
 * of them. A wrong token that goes by the name of a currency of the chain is recorded under its address instead, so that
 * nothing but the configured contract is ever counted as that currency.
 */
export const contractsOf = ({ chain, tokens, wrongTokens }: ChainSettings): Contracts => {
  const currencies = new Set<string>([nativeToken(chain), ...tokens.map((token) => token.symbol)])
  return new Map([
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

/** A transfer that has not been told apart yet from others of the same content. */
type Logged = Omit<Transfer, "position">

/**
 * Nodes number the logs of a block differently (erigon issues 13542 and 17249), so that two providers tell of one log by
 * two indexes. What a log says is the same everywhere: logs of one transaction that say the same are counted.
 */
const positioned = (logged: ReadonlyArray<Logged>): ReadonlyArray<Transfer> => {
  const counts = new Map<string, number>()
  // A log that comes twice in one answer is one log. Some nodes number the logs of each transaction from 0.
  const once = new Map(
    logged.map((transfer) => [`${transfer.blockHash} ${transfer.txHash} ${transfer.place}`, transfer] as const)
  )
  return Array.from(once.values(), (transfer) => {
    const content = `log:${transfer.txHash}:${transfer.currency}:${transfer.amount}`
    const key = `${transfer.blockHash} ${transfer.address} ${content}`
    const before = counts.get(key) ?? 0
    counts.set(key, before + 1)
    return { ...transfer, position: `${content}:${before}` }
  })
}

const tokenTransfer = (log: typeof TransferLog.Type, contracts: Contracts): Logged | undefined => {
  const currency = contracts.get(log.address)
  const amount = Either.getOrElse(decodeWord(log.data), () => 0n)
  if (currency === undefined || log.removed || amount === 0n || !log.topics[2].startsWith(`0x${"0".repeat(24)}`)) {
    return undefined
  }
  return {
    blockNumber: log.blockNumber,
    blockHash: log.blockHash,
    txHash: log.transactionHash,
    place: log.logIndex,
    address: `0x${log.topics[2].slice(addressOffset)}`,
    currency,
    amount
  }
}

/**
 * The token transfers among the answer to `eth_getLogs` for the Transfer topic. A log counts when one of `contracts`
 * wrote it with exactly three topics, 32 bytes of data above zero, and it was not removed: anybody can write a log that
 * looks the same from another contract.
 *
 * Thousands of logs pass here for one that matters, so that only those with a watched receiver are decoded; of the
 * others no more is checked than what the look-up needs. Left: the answer is not a list of logs.
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

const isOtherEvent = (log: unknown): boolean =>
  Predicate.isRecord(log) && Array.isArray(log.topics) && String(log.topics[0]).toLowerCase() !== transferTopic

/** The same, among all that one transaction has logged: events of every kind, any of which may name a watched address. */
export const transfersAmong = (logs: ReadonlyArray<unknown>, contracts: Contracts, watched: AddressSet) =>
  tokenTransfers(
    logs.filter((log) => !isOtherEvent(log)),
    contracts,
    watched
  )

/** The hash of a block among `logs` that is none of `blocks`: the logs were read from another branch of the chain. */
export const strayBlock = (logs: ReadonlyArray<unknown>, blocks: ReadonlySet<string>): string | undefined => {
  let last: unknown
  for (const log of logs) {
    const hash = Predicate.isRecord(log) ? log.blockHash : undefined
    // Logs come block by block, so that nearly all are settled here.
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
 * Transactions of a block that send the chain's coin to a watched address. Whether they succeeded is not said here: a
 * transaction that fails carries its value all the same, so its receipt must be asked for. Left: not a list of
 * transactions, or one that says it is in another block.
 */
export const nativeTransfers = (
  { header, transactions }: FullBlock,
  currency: string,
  watched: AddressSet
): Either.Either<ReadonlyArray<Transfer>, string> => {
  const transfers: Array<Transfer> = []
  for (const transaction of transactions) {
    const to = Predicate.isRecord(transaction) ? transaction.to : undefined
    // The creation of a contract goes to nobody; some nodes leave the field out.
    if (to === null || (to === undefined && Predicate.isRecord(transaction))) continue
    if (typeof to !== "string" || to.length !== addressLength) return Either.left("a transaction to what is no address")
    if (!watched.has(to)) continue
    const decoded = decodePayment(transaction)
    if (Either.isLeft(decoded)) return Either.left(decoded.left)
    const payment = decoded.right
    if (payment.blockHash !== header.hash || payment.blockNumber !== header.number) {
      return Either.left(`transaction ${payment.hash} is listed in block ${header.number} and names another`)
    }
    // What an address sends to itself is no income.
    if (payment.value === 0n || payment.from === payment.to) continue
    transfers.push({
      blockNumber: header.number,
      blockHash: header.hash,
      txHash: payment.hash,
      position: `tx:${payment.transactionIndex}`,
      place: payment.transactionIndex,
      address: payment.to,
      currency,
      amount: payment.value
    })
  }
  return Either.right(transfers)
}
