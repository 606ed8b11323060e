/**
 * Balance and nonce of an address after a block of the past, on the branch of a reconciliation's block, from the first
 * provider that still has that state. Also the two cross-checks: a changed balance is read again in another way, and an
 * assumed baseline above zero needs a second provider. `reconcile.ts` calls it.
 */
import { Effect } from "effect"
import type { BlockRef } from "../../Domain/Receipt.ts"
import type { ChainSettings } from "../../Settings.ts"
import { balanceAt, nonceAt } from "../rpc/balanceMethods.ts"
import { getHeader, sendBatch, sendInBatches } from "../rpc/methods.ts"
import type { RpcClient } from "../rpc/Rpc.ts"
import { inconsistent, otherBlock, type RpcError } from "../rpc/RpcError.ts"
import type { BalancePoint, BalanceQuery, KnownBalance } from "./discrepancy.ts"

/** A block of one branch. */
type BlockId = Pick<BlockRef, "number" | "hash">

/** Blocks behind the head whose states every node has. */
const recent = 128

/** The provider interface of reconciliation. */
export interface StateProvider {
  readonly client: RpcClient
}

/** The provider of a round, and other healthy ones for states and traces that it does not have. */
export interface StateProviders {
  readonly provider: StateProvider
  readonly others: ReadonlyArray<StateProvider>
}

/** Where states are read. */
export interface Sources extends StateProviders {
  /** The block of the round. */
  readonly at: BlockRef
  /** Hashes of blocks on the branch of `at`, by number: a cache. */
  readonly hashes: Map<number, string>
}

/** Whether the provider does not serve the call. */
export const isUnserved = ({ reason }: RpcError): boolean => reason === "refused" || reason === "unsupported"

/** Whether an error means that the state, `depth` blocks back, is pruned. Old nodes report this in various ways. */
const isPruned = (error: RpcError, depth: number): boolean =>
  isUnserved(error) ||
  error.reason === "state" ||
  (depth > recent && (error.reason === "missing" || error.reason === "garbage"))

/** Balance and nonce by block number. The header in the same batch shows which branch they are on. */
const readByNumber = Effect.fnUntraced(function* (client: RpcClient, address: string, block: BlockId) {
  const { number } = block
  const calls = [getHeader(number), balanceAt(address, number), nonceAt(address, number)] as const
  const [header, balance, nonce] = yield* sendBatch(client, calls)
  if (header.hash !== block.hash) return yield* otherBlock(client, block, header.hash, "eth_getBalance")
  return { number, balance, nonce } satisfies BalancePoint
})

/**
 * Balance and nonce of an address after a block. Read by block hash (EIP-1898), so that they are never of another
 * branch; by number only where the node refuses that.
 */
export const stateOf = (client: RpcClient, address: string, block: BlockId) =>
  sendBatch(client, [balanceAt(address, block), nonceAt(address, block)]).pipe(
    Effect.map(([balance, nonce]): BalancePoint => ({ number: block.number, balance, nonce })),
    Effect.catchIf(isUnserved, () => readByNumber(client, address, block))
  )

/** The block of a number on the branch of `at`. Fails as `inconsistent` when the provider is on another branch. */
const blockOf = Effect.fnUntraced(function* ({ at, hashes }: Sources, { client }: StateProvider, number: number) {
  const known = number === at.number ? at.hash : hashes.get(number)
  if (known !== undefined) return { number, hash: known }
  const [{ hash }, tip] = yield* sendBatch(client, [getHeader(number), getHeader(at.number)])
  if (tip.hash !== at.hash) return yield* otherBlock(client, at, tip.hash)
  hashes.set(number, hash)
  return { number, hash }
})

/**
 * Balance and nonce of an address after a block of the round's branch; undefined where no provider has that state.
 * Fails where the round's provider fails for another reason.
 */
export const pointAt = Effect.fnUntraced(function* (sources: Sources, address: string, number: number) {
  const read = (from: StateProvider) =>
    Effect.flatMap(blockOf(sources, from, number), (block) => stateOf(from.client, address, block))
  let found = yield* Effect.catchIf(
    read(sources.provider),
    (error) => isPruned(error, sources.at.number - number),
    () => Effect.succeed(undefined)
  )
  for (const other of sources.others) found ??= yield* Effect.orElseSucceed(read(other), () => undefined)
  return found
})

/**
 * The point to compare an address with: for an assumed point, the real state at its block. A false balance there would
 * hide later income, so on a chain of several providers two must report a balance above the assumed one: the smaller
 * counts. Fails as `inconsistent` where only one reports it.
 */
export const pastOf = Effect.fnUntraced(function* (
  sources: Sources & { readonly chain: Pick<ChainSettings, "rpcUrls"> },
  address: string,
  known: KnownBalance
): Effect.fn.Return<BalancePoint, RpcError> {
  if (!known.assumed) return known
  const { chain, others, provider } = sources
  const reported: Array<BalancePoint> = []
  for (const from of [provider, ...others]) {
    const point = pointAt({ ...sources, provider: from, others: [] }, address, known.number)
    // The provider of the round must respond, even if only that it has no such state.
    const found = from === provider ? yield* point : yield* Effect.orElseSucceed(point, () => undefined)
    if (found === undefined) continue
    reported.push(found)
    if (found.balance <= known.balance || reported.length === 2) break
  }
  const [first, second = first] = reported
  if (first === undefined || second === undefined) return known
  const least = second.balance < first.balance ? second : first
  if (reported.length === 2 || chain.rpcUrls.length < 2 || least.balance <= known.balance) return least
  const detail = `${address} held ${least.balance} in block ${known.number}, and no other provider says so`
  return yield* inconsistent(provider.client, "eth_getBalance", detail)
})

/** An address with its balance that was read first, wei. */
type ReadBalance = readonly [BalanceQuery, bigint]

/** Those that have sent a transaction since the known point: coins may have come and been collected in between. */
export const withOtherNonce = Effect.fnUntraced(function* (
  client: RpcClient,
  at: BlockRef,
  read: ReadonlyArray<ReadBalance>
) {
  const asked = read.filter(([{ withNonce }]) => withNonce)
  const calls = asked.map(([{ address }]) => nonceAt(address, at))
  const nonces = yield* sendInBatches(client, calls)
  return asked.filter(([{ known }], i) => nonces[i] !== known.nonce)
})

/**
 * The states of addresses whose balances are not the expected ones, in their order. Each balance is read again, now by
 * `eth_getBalance`, and must be the same: a stale or empty response would be stored, and the next correct one would
 * look like income. Where the two differ, the state has the smaller one and a `dispute`.
 */
export const statesOf = Effect.fnUntraced(function* (
  client: RpcClient,
  at: BlockRef,
  changed: ReadonlyArray<ReadBalance>
) {
  const calls = changed.flatMap(([{ address }]) => [balanceAt(address, at), nonceAt(address, at)])
  const states = yield* sendInBatches<bigint | number>(client, calls)
  return changed.map(([query, first], i) => {
    const [again, nonce] = [BigInt(states[2 * i] ?? 0n), Number(states[2 * i + 1] ?? 0)]
    const detail = `the balance of ${query.address} in block ${at.number} is ${first} in one answer and ${again} in the next`
    const dispute = again === first ? undefined : inconsistent(client, "eth_getBalance", detail)
    const point: BalancePoint = { number: at.number, balance: again < first ? again : first, nonce }
    return [query, { point, dispute }] as const
  })
})
