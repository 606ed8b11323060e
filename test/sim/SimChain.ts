import { bloomOf } from "./bloom.ts"
import { feeOf, hashOf, payer, type Transaction } from "./transactions.ts"

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

const hex = (value: number): string => value.toString(16).padStart(8, "0")

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
    const { balance, nonce } = accounts.get(address) ?? nothing
    accounts.set(address, { balance: balance + by, nonce: nonce + sent })
  }
  if (one.from !== payer) {
    if ((accounts.get(one.from) ?? nothing).balance < one.value + feeOf(one)) return false
    change(one.from, -feeOf(one) - (one.fails ? 0n : one.value), 1)
  }
  if (one.fails) return true
  if (one.value > 0n && one.inner.length === 0) change(one.to, one.value)
  for (const { to, value } of one.inner) change(to, value)
  return true
}

const creditsOf = (transactions: ReadonlyArray<Transaction>): ReadonlyArray<Credit> => {
  let logIndex = 0
  return transactions.flatMap((one, txIndex): ReadonlyArray<Credit> => {
    if (one.fails) return []
    const txHash = one.hash
    const top =
      one.value > 0n && one.inner.length === 0
        ? [{ address: one.to, contract: undefined, amount: one.value, txHash, position: `tx:${txIndex}` }]
        : []
    const inside = [...new Set(one.inner.map(({ to }) => to))].map((address) => ({
      address,
      contract: undefined,
      amount: one.inner.reduce((sum, { to, value }) => sum + (to === address ? value : 0n), 0n),
      txHash,
      position: `call:${txHash}`
    }))
    const tokens = one.logs.flatMap(({ address, data, topics }) => {
      const position = `log:${logIndex++}`
      const isTransfer = topics.length === 3 && data.length === 66 && BigInt(data) > 0n
      const to = `0x${topics[2]?.slice(26)}`
      return isTransfer ? [{ address: to, contract: address, amount: BigInt(data), txHash, position }] : []
    })
    return [...top, ...inside.filter(({ amount }) => amount > 0n), ...tokens]
  })
}

export interface ChainShape {
  readonly name: string
  /** Milliseconds between blocks. */
  readonly interval: number
  /** Blocks by which the tags are behind the head. */
  readonly safe: number
  readonly finalized: number
}

/** What becomes of the transactions of a block that a reorg takes back. */
export type Fate = "again" | "later" | "never"

/** A chain: a tree of blocks, one branch of which is the chain's, and what waits to be mined. */
export class SimChain {
  readonly shape: ChainShape
  readonly byHash = new Map<string, Block>()
  /** Every transaction that was ever in a block, with the blocks that it was in. */
  readonly inclusions = new Map<string, Array<Block>>()
  /** No block comes by itself. */
  frozen = false
  #blocks: Array<Block> = []
  #waiting: Array<Transaction> = []
  #nextAt: number
  readonly #prefix: string
  #branch = 0
  #finalized = 0
  #safe = 0

  /** A chain of `height` empty blocks by `now`, Unix milliseconds. */
  constructor(shape: ChainShape, height: number, now: number) {
    this.shape = shape
    this.#prefix = hashOf(shape.name).slice(0, 2 + 48)
    this.#nextAt = now - height * shape.interval
    this.mineUntil(now)
  }

  get head(): Block {
    const head = this.#blocks.at(-1)
    if (head === undefined) throw new Error("a chain has a block")
    return head
  }

  get genesis(): Block | undefined {
    return this.#blocks[0]
  }

  get safe(): number {
    return this.#safe
  }

  get finalized(): number {
    return this.#finalized
  }

  at(number: number): Block | undefined {
    return this.#blocks[number]
  }

  /** To be put into the next block. */
  submit(...transactions: ReadonlyArray<Transaction>): void {
    this.#waiting.push(...transactions)
  }

  /** Mines what the time has come for. Unix milliseconds. */
  mineUntil(now: number): void {
    if (this.frozen) {
      this.#nextAt = Math.max(this.#nextAt, now)
      return
    }
    for (; this.#nextAt <= now; this.#nextAt += this.shape.interval) this.#mine(this.#waiting.splice(0), this.#nextAt)
  }

  /** Blocks that come at once, all at the time of the last, whatever their due. */
  mineMany(count: number, now: number): void {
    for (let i = 0; i < count; i++) this.#mine(this.#waiting.splice(0), now)
  }

  /**
   * Another branch takes the place of the last `depth` blocks, with `grows` blocks more (less than none: fewer). Each
   * transaction is mined again in it at once or only after it, or never, and what is mined again comes in another order.
   */
  reorg(depth: number, grows: number, now: number, fate: (transaction: Transaction, i: number) => Fate): void {
    const dropped = this.#blocks.splice(Math.max(1, this.#blocks.length - depth))
    this.#branch++
    const again: Array<Transaction> = []
    for (const [i, one] of dropped.flatMap((block) => block.transactions).entries()) {
      const what = fate(one, i)
      if (what === "again") again.unshift(one)
      if (what === "later") this.#waiting.push(one)
    }
    const count = Math.max(0, dropped.length + grows)
    for (let i = 0; i < count; i++) {
      const share = again.splice(0, Math.ceil(again.length / (count - i)))
      this.#mine(share, (dropped[i]?.time ?? now / 1000) * 1000)
    }
    this.#waiting.push(...again)
  }

  #mine(candidates: ReadonlyArray<Transaction>, at: number): void {
    const parent = this.#blocks.at(-1)
    const changed = new Map(candidates.length === 0 ? [] : parent?.accounts)
    const transactions = candidates.filter((one) => execute(changed, one))
    const number = this.#blocks.length
    const credits = creditsOf(transactions)
    const block: Block & { lastCredited: Block | undefined } = {
      number,
      // A branch has one block of a number: no need for what costs more.
      hash: `${this.#prefix}${hex(this.#branch)}${hex(number)}`,
      parent,
      time: Math.max(Math.floor(at / 1000), parent?.time ?? 0),
      bloom: bloomOf(
        transactions.flatMap((one) => (one.fails ? [] : one.logs.flatMap((log) => [log.address, ...log.topics])))
      ),
      transactions,
      credits,
      lastCredited: parent?.lastCredited,
      accounts: candidates.length === 0 && parent !== undefined ? parent.accounts : changed
    }
    if (credits.length > 0) block.lastCredited = block
    this.#blocks.push(block)
    this.byHash.set(block.hash, block)
    for (const { hash } of transactions) this.inclusions.set(hash, [...(this.inclusions.get(hash) ?? []), block])
    this.#safe = Math.max(this.#safe, number - this.shape.safe)
    this.#finalized = Math.max(this.#finalized, number - this.shape.finalized)
  }
}
