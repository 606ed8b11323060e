import type { RpcRequest } from "../../src/Chains/rpc/Rpc.ts"
import { type Block, blockAt } from "./Block.ts"
import {
  falseFinals,
  hidden,
  highTags,
  invention,
  longBranch,
  renamed,
  shifted,
  lie as told,
  twist,
  wrongTimes
} from "./Lie.ts"
import { contractOf } from "./plans.ts"
import { shownLog } from "./shapes.ts"
import type { How, ToldLie } from "./told.ts"
import { hashOf, transferLog, word } from "./transactions.ts"

// What providers of told stories make of the chain. Each lie is about the blocks from the next one on.

/** A transaction that never was brings this to a payment, in the block that is `above` blocks above the head. */
export const invents = (
  payment: string,
  amount: number,
  { above = 1, ...how }: How & { readonly above?: number } = {}
): ToldLie => ({
  says: `invents ${amount} for ${payment}`,
  make: ({ next, story }) =>
    invention(story.payment(payment).address, next - 1 + above, story.paying(payment, amount, how).transaction)
})

/** As many transactions that never were bring a payment the amount, and a unit more each, in the next block. */
export const floods = (payment: string, transactions: number, amount: number): ToldLie => ({
  says: `floods ${payment} with ${transactions}`,
  make: ({ next, story }) => {
    const { address } = story.payment(payment)
    const { transaction: first } = story.paying(payment, amount)
    const each = Array.from({ length: transactions }, (_, i) => ({
      ...first,
      hash: hashOf(`${first.hash} ${i}`),
      value: first.value && first.value + BigInt(i),
      logs: first.logs.map((log) => ({ ...log, data: word(BigInt(log.data) + BigInt(i)) }))
    }))
    const byHash = new Set(each.map(({ hash }) => hash))
    return told({
      alter: (block) => (block.number === next ? { ...block, transactions: [...block.transactions, ...each] } : block),
      including: (hash, head) => (byHash.has(hash) ? [blockAt(head, next) ?? []].flat() : []),
      balance: (block, of, held) =>
        of === address && block.number >= next ? each.reduce((sum, { value }) => sum + value, held) : held
    })
  }
})

/** Nothing comes to a payment: no log, no coin, no balance. `bloom`: the blooms are made to fit. */
export const hides = (payment: string, { bloom = true } = {}): ToldLie => ({
  says: `hides ${payment}`,
  make: ({ next, provider, story }) =>
    hidden(story.payment(payment).address, next, bloom, (txHash) => provider.withheld.add(txHash))
})

/** What comes to a payment has another transaction's hash. */
export const renames = (payment: string): ToldLie => ({
  says: `renames ${payment}`,
  make: ({ next, place, story }) => renamed(place.chain, story.payment(payment).address, next, () => {})
})

/** A payment's address holds so much more, or less, also in the `since` blocks before. */
export const shifts = (payment: string, by: number, since = 0): ToldLie => ({
  says: `shifts ${payment} by ${by}`,
  make: ({ next, story }) => shifted(story.payment(payment).address, next - since, BigInt(by))
})

/** In the first new block that is asked about, and only there, a payment's address holds nothing, and has sent something. */
export const empties = (payment: string): ToldLie => ({
  says: `empties ${payment}`,
  make: ({ next, story }) => {
    const { address } = story.payment(payment)
    let first: number | undefined
    const isIt = ({ number }: Block, of: string) => {
      if (of !== address || number < next) return false
      first ??= number
      return number === first
    }
    return told({
      balance: (block, of, held) => (isIt(block, of) ? 0n : held),
      nonce: (block, of, sent) => (isIt(block, of) ? 1 : sent)
    })
  }
})

/** A payment's address holds more with each search for its money, instead of what it really holds. */
export const holdsAnew = (payment: string): ToldLie => ({
  says: `holds more of ${payment} again and again`,
  make: ({ next, story }) => {
    const { address } = story.payment(payment)
    let searches = 0
    return told({
      balance: ({ number }, of, held) =>
        of === address ? 10n * BigInt(Math.max(0, Math.min(searches, number - next + 40))) : held,
      // Each search begins with the logs.
      answer: ({ method }, result) => {
        if (method === "eth_getLogs") searches++
        return result
      }
    })
  }
})

/** Blocks are dated so many seconds later, or earlier: all, or so many. */
export const dates = (by: number, blocks = Number.POSITIVE_INFINITY): ToldLie => ({
  says: `dates by ${by}`,
  make: ({ next }) => wrongTimes(by, next, next + blocks - 1)
})

/**
 * A branch of its own, of empty blocks, is so many blocks higher than the chain. It begins on top of the head, or `below`
 * blocks below it.
 */
export const strays = (ahead: number, below = 0): ToldLie => ({
  says: `strays by ${ahead}`,
  make: ({ place: { chain } }) => {
    const fork = chain.at(chain.head.number - below) ?? chain.head
    return longBranch(fork, ahead, hashOf(`above ${fork.hash}`).slice(2, 10))
  }
})

/** The block with a transaction is so many blocks lower, and what is above it there is another branch. */
export const lowers = (as: string, by: number): ToldLie => ({
  says: `lowers ${as} by ${by}`,
  make: ({ place: { chain }, story }) => {
    const paid = chain.inclusions.get(story.hashOf(as))?.at(-1)
    if (paid === undefined) throw new Error(`${as} is in no block`)
    const lower = { ...paid, number: paid.number - by, parent: chain.at(paid.number - by - 1) }
    const branch = longBranch(lower, 0, hashOf(`lower ${as}`).slice(2, 10))
    return { ...branch, byHash: (hash) => (hash === paid.hash ? lower : branch.byHash(hash)) }
  }
})

/** Each answer about the head's block has another token transfer to a payment in it. */
export const inventsAnew = (payment: string, amount: number): ToldLie => ({
  says: `invents ${amount} for ${payment} again and again`,
  make: ({ next, place, story }) => {
    const { address, currency } = story.payment(payment)
    let count = 0
    return twist(/eth_getLogs/, (logs, { params: [filter] }) => {
      const block = place.chain.at(next - 1)
      const { fromBlock, toBlock } = filter as { readonly fromBlock?: string; readonly toBlock?: string }
      if (block === undefined || Number(fromBlock) >= next || Number(toBlock) < next - 1) return logs
      const log = transferLog(contractOf(place.plan, currency), address, BigInt(amount))
      const transaction = { hash: hashOf(`anew ${++count}`), index: 7 }
      return [...(logs as ReadonlyArray<unknown>), shownLog(log, block, transaction, 7)]
    })
  }
})

/** The tags are at the head. */
export const tags: ToldLie = { says: "raises the tags", make: () => highTags }

/** Blocks have another hash once they are final. */
export const rehashes: ToldLie = { says: "rehashes", make: ({ place }) => falseFinals(place.chain) }

/** It has each block three seconds later. */
export const lags: ToldLie = {
  says: "lags",
  make: ({ story }) =>
    told({ head: (real) => (story.world.now < real.time * 1_000 + 3_000 ? (real.parent ?? real) : real) })
}

/** Some methods are answered otherwise. `edit` may throw a `Refusal`. */
export const edits = (method: RegExp, edit: (result: unknown, call: RpcRequest) => unknown): ToldLie => ({
  says: `edits ${method}`,
  make: () => twist(method, edit)
})
