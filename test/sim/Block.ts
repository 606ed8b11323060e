import { transferTopic } from "../../src/Chains/rpc/methods.ts"
import { bloomOf } from "./bloom.ts"
import { feeOf, isRich, type Transaction } from "./transactions.ts"

/** Money that a block brings to an address. */
export interface Credit {
  readonly address: string
  /** The contract that wrote the log; undefined for the chain's coin. */
  readonly contract: string | undefined
  readonly amount: bigint
  readonly txHash: string
  /** `log:i`, `tx:i`, or `call:hash` for what moved inside the transaction. */
  readonly position: string
}

interface Account {
  readonly balance: bigint
  readonly nonce: number
}

export interface Block {
  readonly number: number
  readonly hash: string
  readonly parent: Block | undefined
  /** Unix seconds. */
  readonly time: number
  readonly bloom: string
  readonly transactions: ReadonlyArray<Transaction>
  readonly credits: ReadonlyArray<Credit>
  /** This block, or the newest before it, that has credits. */
  readonly lastCredited: Block | undefined
  /** Accounts as they are after this block. */
  readonly accounts: ReadonlyMap<string, Account>
}

const nothing: Account = { balance: 0n, nonce: 0 }
export const accountAt = (block: Block, address: string): Account => block.accounts.get(address) ?? nothing

/** The block of that number on the branch that ends with `head`. */
export const blockAt = (head: Block, number: number): Block | undefined => {
  let block: Block | undefined = head
  while (block !== undefined && block.number > number) block = block.parent
  return block?.number === number ? block : undefined
}

export const isOnBranch = (head: Block, block: Block): boolean => blockAt(head, block.number) === block

/** Applies a transaction to the accounts; false, and nothing done, when its sender cannot pay for it. */
const execute = (accounts: Map<string, Account>, one: Transaction): boolean => {
  const change = (address: string, by: bigint, sent = 0) => {
    if (isRich(address)) return
    const { balance, nonce } = accounts.get(address) ?? nothing
    accounts.set(address, { balance: balance + by, nonce: nonce + sent })
  }
  if (!isRich(one.from)) {
    if ((accounts.get(one.from) ?? nothing).balance < one.value + feeOf(one)) return false
    change(one.from, -feeOf(one) - (one.fails ? 0n : one.value), 1)
  }
  if (one.fails) return true
  if (one.value > 0n) change(one.to, one.value)
  for (const { from, to, value } of one.inner) {
    change(from, -value)
    change(to, value)
  }
  return true
}

/** What an address sends to itself is not income, and what reaches an account outside the test is not counted. */
const isIncome = ({ from, to }: { readonly from: string; readonly to: string }): boolean => from !== to && !isRich(to)

const creditsOf = (transactions: ReadonlyArray<Transaction>): ReadonlyArray<Credit> => {
  let logIndex = 0
  return transactions.flatMap((one, txIndex): ReadonlyArray<Credit> => {
    if (one.fails) return []
    const txHash = one.hash
    const top =
      one.value > 0n && isIncome(one)
        ? [{ address: one.to, contract: undefined, amount: one.value, txHash, position: `tx:${txIndex}` }]
        : []
    const moves = one.inner.filter(isIncome)
    const inside = [...new Set(moves.map(({ to }) => to))].map((address) => ({
      address,
      contract: undefined,
      amount: moves.reduce((sum, { to, value }) => sum + (to === address ? value : 0n), 0n),
      txHash,
      position: `call:${txHash}`
    }))
    const tokens = one.logs.flatMap(({ address, data, topics }) => {
      const position = `log:${logIndex++}`
      const isTransfer = topics[0] === transferTopic && topics.length === 3 && data.length === 66 && BigInt(data) > 0n
      const to = `0x${topics[2]?.slice(26)}`
      return isTransfer ? [{ address: to, contract: address, amount: BigInt(data), txHash, position }] : []
    })
    return [...top, ...inside.filter(({ amount }) => amount > 0n), ...tokens]
  })
}

/** Every log of these transactions is in this bloom. */
export const bloomOfLogs = (transactions: ReadonlyArray<Transaction>): string =>
  bloomOf(
    transactions.flatMap((one) =>
      one.fails || one.isStateSync ? [] : one.logs.flatMap((log) => [log.address, ...log.topics])
    )
  )

/** The block after `parent`, with those of the transactions that their senders can pay. `time` in Unix seconds. */
export const nextBlock = (
  parent: Block | undefined,
  hash: string,
  time: number,
  candidates: ReadonlyArray<Transaction>
): Block => {
  const changed = new Map(candidates.length === 0 ? [] : parent?.accounts)
  const transactions = candidates.filter((one) => execute(changed, one))
  const credits = creditsOf(transactions)
  const block: Block & { lastCredited: Block | undefined } = {
    number: parent === undefined ? 0 : parent.number + 1,
    hash,
    parent,
    time,
    bloom: bloomOfLogs(transactions),
    transactions,
    credits,
    lastCredited: parent?.lastCredited,
    accounts: candidates.length === 0 && parent !== undefined ? parent.accounts : changed
  }
  if (credits.length > 0) block.lastCredited = block
  return block
}
