import { Array as Arr, Effect } from "effect"
import type { BlockRef } from "../../Domain/Receipt.ts"
import type { ChainSettings } from "../../Settings.ts"
import { balanceAt, nonceAt } from "../rpc/balanceMethods.ts"
import { getHeader, sendBatch } from "../rpc/methods.ts"
import type { RpcClient } from "../rpc/Rpc.ts"
import { inconsistent, type RpcError } from "../rpc/RpcError.ts"
import type { BalancePoint, BalanceQuery, KnownBalance } from "./discrepancy.ts"

/** Addresses in one batch, two calls each; providers allow from 100 calls up. */
const statesPerBatch = 45
/** A block of one branch. */
type BlockId = Pick<BlockRef, "number" | "hash">

/** How far back every node has states. */
const recent = 128

/** As far as the oracle needs to know a provider. */
export interface StateProvider {
  readonly client: RpcClient
}

/** Whom a state is asked of: the provider of the round at the block `at`, and others that may have older ones. */
interface Sources {
  readonly provider: StateProvider
  readonly others: ReadonlyArray<StateProvider>
  readonly at: BlockRef
  /** Hashes of blocks below `at` on its branch, by number, as far as they have been asked for. */
  readonly hashes: Map<number, string>
}

/** Whether a node says that it has no such state, `depth` blocks back. Old nodes have words of their own for it. */
const isGone = ({ reason }: RpcError, depth: number): boolean =>
  reason === "state" ||
  reason === "refused" ||
  reason === "unsupported" ||
  (depth > recent && (reason === "missing" || reason === "garbage"))

const otherBlock = (number: number, hash: string, found: string): string =>
  `block ${number} was ${hash} and is ${found}`

/** Balance and nonce by the block's number. The header in the same batch shows of which branch they are. */
const readByNumber = Effect.fnUntraced(function* (client: RpcClient, address: string, { hash, number }: BlockId) {
  const [header, balance, nonce] = yield* sendBatch(client, [
    getHeader(number),
    balanceAt(address, number),
    nonceAt(address, number)
  ])
  if (header.hash !== hash) return yield* inconsistent(client, "eth_getBalance", otherBlock(number, hash, header.hash))
  return { number, balance, nonce } satisfies BalancePoint
})

/**
 * What an address held after a block: asked by the block's hash (EIP-1898), so that it is of no other branch; by its
 * number only where a node refuses that.
 */
export const stateOf = (client: RpcClient, address: string, block: BlockId) =>
  sendBatch(client, [balanceAt(address, block), nonceAt(address, block)]).pipe(
    Effect.map(([balance, nonce]): BalancePoint => ({ number: block.number, balance, nonce })),
    Effect.catchIf(
      ({ reason }) => reason === "refused" || reason === "unsupported",
      () => readByNumber(client, address, block)
    )
  )

/** A block of the branch that the round's block is on, by the word of a provider that has the latter. */
const blockOf = Effect.fnUntraced(function* ({ at, hashes }: Sources, { client }: StateProvider, number: number) {
  const known = number === at.number ? at.hash : hashes.get(number)
  if (known !== undefined) return { number, hash: known }
  const [{ hash }, tip] = yield* sendBatch(client, [getHeader(number), getHeader(at.number)])
  if (tip.hash !== at.hash) {
    return yield* inconsistent(client, "eth_getBlockByNumber", otherBlock(at.number, at.hash, tip.hash))
  }
  hashes.set(number, hash)
  return { number, hash }
})

/** What an address held after a block of the round's branch; undefined where no provider has that state any more. */
export const pointAt = Effect.fnUntraced(function* (sources: Sources, address: string, number: number) {
  const read = (asking: StateProvider) =>
    Effect.flatMap(blockOf(sources, asking, number), (block) => stateOf(asking.client, address, block))
  const first = yield* Effect.catchIf(
    read(sources.provider),
    (error) => isGone(error, sources.at.number - number),
    () => Effect.succeed(undefined)
  )
  if (first !== undefined) return first
  for (const other of sources.others) {
    const found = yield* Effect.option(read(other))
    if (found._tag === "Some") return found.value
  }
  return undefined
})

/**
 * Where to compare an address from: what it really held where nobody has looked, and it was taken to be empty. Who says that
 * it held something by then hides what came since, so that on a chain of several providers two have to: the smaller of their
 * balances is taken, and where only one of them tells, nothing can be said.
 */
export const pastOf = Effect.fnUntraced(function* (
  sources: Sources & { readonly chain: Pick<ChainSettings, "rpcUrls"> },
  address: string,
  known: KnownBalance
): Effect.fn.Return<BalancePoint, RpcError> {
  if (!known.assumed) return known
  const { chain, others, provider } = sources
  const told: Array<BalancePoint> = []
  for (const asking of [provider, ...others]) {
    const point = pointAt({ ...sources, provider: asking, others: [] }, address, known.number)
    // The provider of the round has to answer, be it that it has no such state.
    const found = asking === provider ? yield* point : yield* Effect.orElseSucceed(point, () => undefined)
    if (found === undefined) continue
    told.push(found)
    if (found.balance <= known.balance || told.length === 2) break
  }
  const [first, second = first] = told
  if (first === undefined || second === undefined) return known
  const least = second.balance < first.balance ? second : first
  if (told.length === 2 || chain.rpcUrls.length < 2 || least.balance <= known.balance) return least
  const detail = `${address} held ${least.balance} in block ${known.number}, and no other provider says so`
  return yield* inconsistent(provider.client, "eth_getBalance", detail)
})

/** What an address holds at a block, and what the two ways to ask for it make of its balance. */
interface State {
  /** The smaller balance, where they differ. */
  readonly point: BalancePoint
  readonly dispute: RpcError | undefined
}

/**
 * The states of addresses whose balances are not what was expected, in their order. The balances are asked for again by
 * the other way to ask, and must be the same: a stale or an empty answer would be kept, and turn into money that came once
 * the right one is back.
 */
export const statesOf = Effect.fnUntraced(function* (
  client: RpcClient,
  at: BlockRef,
  changed: ReadonlyArray<readonly [BalanceQuery, bigint]>
) {
  const found: Array<readonly [BalanceQuery, State]> = []
  for (const part of Arr.chunksOf(changed, statesPerBatch)) {
    const states = yield* sendBatch(
      client,
      part.flatMap(([{ address }]) => [balanceAt(address, at), nonceAt(address, at)])
    )
    for (const [i, [one, first]] of part.entries()) {
      const [again, nonce] = [BigInt(states[2 * i] ?? 0n), Number(states[2 * i + 1] ?? 0)]
      const detail = `the balance of ${one.address} in block ${at.number} is ${first} in one answer and ${again} in the next`
      const dispute = again === first ? undefined : inconsistent(client, "eth_getBalance", detail)
      const point = { number: at.number, balance: again < first ? again : first, nonce }
      found.push([one, { point, dispute }])
    }
  }
  return found
})
