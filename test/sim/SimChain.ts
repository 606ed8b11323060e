import { type Block, nextBlock } from "./Block.ts"
import { hashOf, type Transaction } from "./transactions.ts"

const digits = (value: number): string => value.toString(16).padStart(8, "0")

export interface ChainShape {
  readonly name: string
  /** Milliseconds between blocks. */
  readonly interval: number
  /** Blocks by which the tags are behind the head. */
  readonly safe: number
  readonly finalized: number
}

/** The fate of the transactions in a block that a reorg removes. */
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
    const number = this.#blocks.length
    // A branch has one block of a number: no need for what costs more.
    const hash = `${this.#prefix}${digits(this.#branch)}${digits(number)}`
    const block = nextBlock(parent, hash, Math.max(Math.floor(at / 1000), parent?.time ?? 0), candidates)
    this.#blocks.push(block)
    this.byHash.set(block.hash, block)
    for (const one of block.transactions) {
      this.inclusions.set(one.hash, [...(this.inclusions.get(one.hash) ?? []), block])
    }
    this.#safe = Math.max(this.#safe, number - this.shape.safe)
    this.#finalized = Math.max(this.#finalized, number - this.shape.finalized)
  }
}
