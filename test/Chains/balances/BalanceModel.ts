import type { Move } from "../../../src/Chains/rpc/balanceMethods.ts"
import type { BlockRef } from "../../../src/Domain/Receipt.ts"
import type { Block } from "../../sim/Block.ts"
import { HandChain } from "../../sim/HandChain.ts"
import { payer, paymaster, type Transaction, transaction } from "../../sim/transactions.ts"

/** What every transaction of the model costs: one unit of gas at one wei, and one wei for the data. */
export const fee = 2n

/** One transaction, described by what it does. */
export interface Deed {
  readonly from: string
  readonly to: string
  readonly value: bigint
  /** Addresses in the calldata. */
  readonly names: ReadonlyArray<string>
  readonly fails: boolean
  /** What the called contract moves. */
  readonly moves: ReadonlyArray<Move>
}

/** Deeds: one that moves nothing, and variants of it. */
export const nothing: Deed = { from: payer, to: paymaster, value: 0n, names: [], fails: false, moves: [] }
export const direct = (to: string, value: bigint): Deed => ({ ...nothing, to, value })
export const spends = (from: string, value: bigint): Deed => ({ ...nothing, from, to: payer, value })
/** From inside a contract; `names` what the calldata does. */
export const inside = (to: string, amount: bigint, names: ReadonlyArray<string> = []): Deed => ({
  ...nothing,
  names,
  moves: [{ from: paymaster, to, amount }]
})

const done = (name: string, { moves, names, ...deed }: Deed): Transaction =>
  transaction(name, {
    ...deed,
    input: `0x${names.map((one) => one.slice(2)).join("")}`,
    inner: moves.map(({ amount, from, to }) => ({ type: "CALL", from, to, value: amount })),
    gas: 100_000n,
    gasUsed: 1n,
    gasPrice: 1n,
    l1Fee: 1n
  })

interface DeedsBlock extends Block {
  readonly deeds: ReadonlyArray<Transaction>
}

/** A chain of balances. A sender who cannot pay for a deed does not do it. */
export class BalanceModel extends HandChain<DeedsBlock> {
  override layer2 = true

  constructor(seed: string) {
    super([], seed)
    this.mine([])
  }

  get head(): BlockRef {
    const { hash, number, time } = this.blocks.at(-1) ?? { hash: "", number: 0, time: 0 }
    return { hash, number, time }
  }

  /** `time` in Unix seconds. */
  mine(deeds: ReadonlyArray<Deed>, time?: number): DeedsBlock {
    const name = `${this.seed} ${this.blocks.length} ${this.branch}`
    const block = this.next(
      deeds.map((deed, i) => done(`${name} ${i}`, deed)),
      time
    )
    const mined = { ...block, deeds: block.transactions }
    this.blocks.push(mined)
    return mined
  }
}
