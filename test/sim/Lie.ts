import type { RpcRequest } from "../../src/Chains/rpc/Rpc.ts"
import { accountAt, type Block, blockAt, bloomOfLogs, nextBlock } from "./Block.ts"
import type { SimChain } from "./SimChain.ts"
import type { Transaction } from "./transactions.ts"

/**
 * What a provider makes of the chain while it lies: the same story in every method. Blocks go in and come out as
 * they are in the chain; only `alter` says how one is shown.
 */
export interface Lie {
  readonly alter: (block: Block) => Block
  /** What an address holds after a block, where it holds `held`. */
  readonly balance: (block: Block, address: string, held: bigint) => bigint
  /** What an address has sent by a block, where that is `sent`. */
  readonly nonce?: (block: Block, address: string, sent: number) => number
  /** The block that is shown under a hash that the chain does not know. */
  readonly byHash: (hash: string) => Block | undefined
  /** The blocks that a transaction is shown in and is not. */
  readonly including: (hash: string, head: Block) => ReadonlyArray<Block>
  /** The number of a tag that the chain has at `number`. */
  readonly tag: (number: number) => number
  readonly head: (real: Block) => Block
  /** What it answers a call with instead of this result, or throws a `Refusal`. */
  readonly answer?: (call: RpcRequest, result: unknown) => unknown
}

const truth: Lie = {
  alter: (block) => block,
  balance: (_block, _address, held) => held,
  byHash: () => undefined,
  including: () => [],
  tag: (number) => number,
  head: (real) => real
}

/** A lie that is shown the same each time. */
export const lie = (over: Partial<Lie>): Lie => {
  const altered = new WeakMap<Block, Block>()
  const { alter } = over
  return {
    ...truth,
    ...over,
    ...(alter === undefined
      ? {}
      : {
          alter: (block) => {
            const before = altered.get(block)
            if (before !== undefined) return before
            const now = alter(block)
            altered.set(block, now)
            return now
          }
        })
  }
}

/** Several at once; undefined for none. */
export const together = (lies: ReadonlyArray<Lie>): Lie | undefined => {
  const [first, ...others] = lies
  if (first === undefined || others.length === 0) return first
  return {
    alter: (block) => lies.reduce((shown, one) => one.alter(shown), block),
    balance: (block, address, held) => lies.reduce((claimed, one) => one.balance(block, address, claimed), held),
    nonce: (block, address, sent) =>
      lies.reduce((claimed, one) => one.nonce?.(block, address, claimed) ?? claimed, sent),
    byHash: (hash) => lies.map((one) => one.byHash(hash)).find((block) => block !== undefined),
    including: (hash, head) => lies.flatMap((one) => one.including(hash, head)),
    tag: (number) => lies.reduce((claimed, one) => one.tag(claimed), number),
    head: (real) => lies.reduce((claimed, one) => one.head(claimed), real),
    answer: (call, result) => lies.reduce((said, one) => (one.answer ? one.answer(call, said) : said), result)
  }
}

/** Some methods are answered otherwise; every other one as usual. */
export const twist = (method: RegExp, edit: (result: unknown, call: RpcRequest) => unknown): Lie => ({
  ...truth,
  answer: (call, result) => (method.test(call.method) ? edit(result, call) : result)
})

const withTransactions = (block: Block, transactions: ReadonlyArray<Transaction>): Block => ({
  ...block,
  transactions,
  bloom: bloomOfLogs(transactions)
})

/** What a transaction brings to an address of the chain's coin. */
const coinsTo = (address: string, { fails, inner, to, value }: Transaction): bigint => {
  if (fails) return 0n
  if (inner.length > 0) return inner.reduce((sum, call) => sum + (call.to === address ? call.value : 0n), 0n)
  return to === address ? value : 0n
}

/** Logs that bring something to an address have it as their third topic. */
const isTo = (address: string, topics: ReadonlyArray<string>): boolean => topics[2]?.endsWith(address.slice(2)) ?? false

/** The transactions above block `below`, up to `block`, that bring coins to an address. */
const paying = (address: string, block: Block, below: number): ReadonlyArray<Transaction> => {
  const found: Array<Transaction> = []
  for (let at = block.lastCredited; at !== undefined && at.number > below; at = at.parent?.lastCredited) {
    found.push(...at.transactions.filter((one) => coinsTo(address, one) > 0n))
  }
  return found
}

/** A transaction that never was, in the block of that number, with what it brings to `address`. */
export const invention = (address: string, number: number, transaction: Transaction): Lie => {
  const coins = coinsTo(address, transaction)
  return lie({
    alter: (block) => (block.number === number ? withTransactions(block, [...block.transactions, transaction]) : block),
    balance: (block, of, held) => (of === address && block.number >= number ? held + coins : held),
    including: (hash, head) => (hash === transaction.hash ? [blockAt(head, number) ?? []].flat() : [])
  })
}

/** All that comes to an address from the block of that number on comes `times` as much, in as many logs. */
export const multiplied = (address: string, from: number, times: number): Lie => {
  const extra = BigInt(times - 1)
  return lie({
    alter: (block) => {
      if (block.number < from) return block
      return withTransactions(
        block,
        block.transactions.map((one) => ({
          ...one,
          value: one.to === address && one.inner.length === 0 ? one.value * BigInt(times) : one.value,
          inner: one.inner.map((call) => (call.to === address ? { ...call, value: call.value * BigInt(times) } : call)),
          logs: one.logs.flatMap((log) => Array.from({ length: isTo(address, log.topics) ? times : 1 }, () => log))
        }))
      )
    },
    balance: (block, of, held) => {
      if (of !== address || block.number < from) return held
      return held + extra * paying(address, block, from - 1).reduce((sum, one) => sum + coinsTo(address, one), 0n)
    }
  })
}

/**
 * Whatever brings something to an address from the block of that number on has another transaction's hash.
 *
 * @param renames hears of each transaction that is renamed, which may bring something to other addresses too
 */
export const renamed = (chain: SimChain, address: string, from: number, renames: (txHash: string) => void): Lie => {
  const hashes = new Map<string, string>()
  const rename = (one: Transaction): Transaction => {
    if (coinsTo(address, one) === 0n && !one.logs.some(({ topics }) => isTo(address, topics))) return one
    const hash = `0x7e7a3e${one.hash.slice(8)}`
    hashes.set(hash, one.hash)
    renames(one.hash)
    return { ...one, hash }
  }
  return lie({
    alter: (block) => (block.number < from ? block : { ...block, transactions: block.transactions.map(rename) }),
    including: (hash) => [...(chain.inclusions.get(hashes.get(hash) ?? "") ?? [])]
  })
}

/**
 * Nothing comes to an address from the block of that number on: no log, no coin, no balance.
 *
 * @param bloom whether the blooms are made to fit
 * @param hides hears of each transaction that is hidden
 */
export const hidden = (address: string, from: number, bloom: boolean, hides: (txHash: string) => void): Lie =>
  lie({
    alter: (block) => {
      if (block.number < from) return block
      const isOf = (one: Transaction) =>
        coinsTo(address, one) > 0n || one.logs.some(({ topics }) => isTo(address, topics))
      const shown = block.transactions.flatMap((one) => {
        if (!isOf(one)) return [one]
        hides(one.hash)
        if (one.to === address) return []
        const inner = one.inner.filter(({ to }) => to !== address)
        return [{ ...one, inner, logs: one.logs.filter(({ topics }) => !isTo(address, topics)) }]
      })
      return bloom ? withTransactions(block, shown) : { ...block, transactions: shown }
    },
    balance: (block, of, held) => {
      if (of !== address || block.number < from) return held
      for (const { hash } of paying(address, block, from - 1)) hides(hash)
      const before = blockAt(block, from - 1)
      return before === undefined ? 0n : accountAt(before, address).balance
    }
  })

/** An address holds so much more from the block of that number on, or less. */
export const shifted = (address: string, from: number, by: bigint): Lie =>
  lie({
    balance: (block, of, held) => {
      if (of !== address || block.number < from) return held
      return held + by < 0n ? 0n : held + by
    }
  })

/** A branch of empty blocks on top of `fork`, always so many blocks higher than the chain. */
export const longBranch = (fork: Block, ahead: number, name: string): Lie => {
  const branch: Array<Block> = []
  const hashes = new Map<string, Block>()
  const grow = (parent: Block, time: number): Block => {
    const number = parent.number + 1
    const hash = `0x${"b4".repeat(4)}${name}${number.toString(16).padStart(8, "0")}`.padEnd(66, "0")
    const block = nextBlock(parent, hash, time, [])
    hashes.set(hash, block)
    branch.push(block)
    return block
  }
  return lie({
    head: (real) => {
      let tip = branch.at(-1) ?? fork
      while (tip.number < real.number + ahead) tip = grow(tip, Math.max(tip.time, real.time))
      return tip
    },
    byHash: (hash) => hashes.get(hash)
  })
}

/** Block times are so many seconds ahead, or behind, in the blocks of these numbers. */
export const wrongTimes = (by: number, from = 0, to = Number.POSITIVE_INFINITY): Lie =>
  lie({ alter: (block) => (block.number < from || block.number > to ? block : { ...block, time: block.time + by }) })

/** The tags are at the head. */
export const highTags: Lie = lie({ tag: () => Number.MAX_SAFE_INTEGER })

/** Blocks have another hash from when they are final on. */
export const falseFinals = (chain: SimChain): Lie => {
  const hashes = new Map<string, Block>()
  return {
    ...truth,
    alter: (block) => {
      if (block.number > chain.finalized) return block
      const hash = `0xfa15e${block.hash.slice(7)}`
      hashes.set(hash, chain.at(block.number) ?? block)
      return { ...block, hash }
    },
    byHash: (hash) => hashes.get(hash)
  }
}
