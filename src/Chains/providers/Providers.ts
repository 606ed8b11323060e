import { Clock, Effect, Either } from "effect"
import { chainTraits, type Network, networkKey } from "../../Domain/Chain.ts"
import type { ChainSettings } from "../../Settings.ts"
import { type Instruments, Metrics } from "../../Telemetry/Metrics.ts"
import { type CallResult, makeClient, type Rpc, type RpcClient } from "../rpc/Rpc.ts"
import type { RpcError, RpcReason } from "../rpc/RpcError.ts"
import { BlockRange } from "./BlockRange.ts"
import { checkIdentity, corroborateGenesis, type GenesisConsensus, type WrongChain } from "./chainIdentity.ts"
import {
  contradict,
  coolDown,
  endSilence,
  isContradicted,
  isCoolingDown,
  isLagging,
  makeProviderSlot,
  mayServeAt,
  type Provider,
  type ProviderHealth,
  type ProviderSlot,
  providerHealthOf,
  reasonNotServing
} from "./ProviderSlot.ts"

export type { Provider } from "./ProviderSlot.ts"

/** Blocks to read at once where only logs are read, and no block. */
const logsOnly = 2_000
/** Not the provider's health, but the size of what it was asked for: the next part is smaller. */
const sizeErrors: ReadonlySet<RpcReason> = new Set(["range", "too_large"])

/** The providers of one chain in one mode: one serves, until it fails. Times are Unix milliseconds. */
export interface Providers {
  /**
   * The provider to read from. Its chain id has been checked since it last failed, and its first block once. Fails, when
   * none can be used, with the error of the one that may come back first.
   */
  readonly current: Effect.Effect<Provider, RpcError | WrongChain>
  /** Another one that can be used, checked like `current`; undefined when there is none. */
  readonly other: (than: Provider) => Effect.Effect<Provider | undefined>
  /** All others that can be used, checked like `current`; contradicted ones only where there is no other. */
  readonly others: (than: Provider) => Effect.Effect<ReadonlyArray<Provider>>
  /** All others that can be used, contradicted ones among them: each has a voice, and none decides by its own. */
  readonly witnesses: (than: Provider) => Effect.Effect<ReadonlyArray<Provider>>
  /** Which chain this is, by the word of all its providers. Fails where `serving` does not tell. */
  readonly agree: (serving: Provider) => Effect.Effect<GenesisConsensus, RpcError>
  /** Reading has begun on the chain with that first block: who has another one serves another chain. */
  readonly began: (genesis: string | undefined) => void
  /** Asks once more whether it serves the right chain: what looks like a reorg may be another chain's blocks. */
  readonly verify: (provider: Provider) => Effect.Effect<void, RpcError | WrongChain>
  /**
   * It failed, or the one that the error names: that is left alone for a while. One that is only behind is used where there
   * is no other.
   */
  readonly failed: (provider: Provider, error: RpcError | WrongChain) => Effect.Effect<void>
  /** Others deny what it has reported: it does not serve for an hour, and nobody decides by it alone. */
  readonly contradicted: (provider: Provider, detail: string) => Effect.Effect<void>
  /** What was asked of it went well. */
  readonly succeeded: (provider: Provider) => void
  /** It has answered a question about what another one has reported: its failures are forgotten. */
  readonly answered: (provider: Provider) => Effect.Effect<void>
  /** Milliseconds for which all others have been asked in vain, the one that was so for the shortest time. */
  readonly silence: (than: Provider) => number
  /** When one of the others last did, or all were made; not after `now`. */
  readonly silentSince: (than: Provider, now: number) => number
  /** When `current` may work: `now`, or later if none can be used until then. */
  readonly nextTry: (now: number) => number
  readonly health: (now: number) => ReadonlyArray<ProviderHealth>
  readonly all: ReadonlyArray<Provider>
}

/** The same client, whose calls are counted as those of a network. */
const counted = (network: Network, { rpcCalls }: Instruments, { counters, host, sendEach }: RpcClient): RpcClient => {
  const count = (method: string, reason: RpcReason | "ok") =>
    rpcCalls.add([network.chain, network.mode, method, reason])
  const outcomeOf = (reply: CallResult | undefined) =>
    reply === undefined || Either.isRight(reply) ? "ok" : reply.left.reason
  return makeClient({
    counters,
    host,
    sendEach: (calls) =>
      Effect.tapBoth(sendEach(calls), {
        onSuccess: (replies) =>
          Effect.sync(() => {
            for (const [i, { method }] of calls.entries()) count(method, outcomeOf(replies[i]))
          }),
        onFailure: ({ reason }) =>
          Effect.sync(() => {
            for (const { method } of calls) count(method, reason)
          })
      })
  })
}

/**
 * The providers of a chain, in the order of its `rpcUrls`. `storedGenesis` is the hash of its first block; while there is
 * none, no provider is measured by it.
 */
export const makeProviders = Effect.fn("Providers.make")(function* (
  network: Network,
  chain: ChainSettings,
  rpc: Rpc["Type"],
  storedGenesis: string | undefined
) {
  const newSpan = () => new BlockRange(chainTraits[chain.chain].readsFullBlocks ? undefined : logsOnly)
  const metrics = yield* Metrics
  const madeAt = yield* Clock.currentTimeMillis
  const slots = chain.rpcUrls.map((url, index) =>
    makeProviderSlot(counted(network, metrics, rpc.client(url)), newSpan(), index, madeAt)
  )
  const [first] = slots
  if (first === undefined) return yield* Effect.dieMessage(`chains.${networkKey(network)} has no rpc_urls`)
  let serving = first
  let genesis = storedGenesis
  /** Since when all have been asked for the chain's first block. */
  let asksSince: number | undefined
  const slotOf = ({ index }: Provider): ProviderSlot => slots[index] ?? first
  /** Whose failure it is: what one was asked may have led to a question to another. */
  const failing = (asked: Provider, { host }: RpcError | WrongChain): ProviderSlot =>
    (host === asked.client.host ? undefined : slots.find(({ provider }) => provider.client.host === host)) ??
    slotOf(asked)

  /** Fails unless the provider serves the right chain. */
  const check = Effect.fnUntraced(function* (slot: ProviderSlot) {
    const began = genesis === undefined ? [] : [{ number: 0, hash: genesis }]
    const known = [...chain.knownBlocks.filter(({ hash }) => hash !== genesis), ...began]
    yield* checkIdentity(network, chain.chainId, slot.sameGenesis ? [] : known, slot.provider.client)
    slot.sameGenesis = known.some(({ number }) => number === 0)
    slot.checked = true
  })

  const usable = (slot: ProviderSlot) =>
    slot.checked
      ? Effect.succeed(true)
      : check(slot).pipe(
          Effect.as(true),
          Effect.catchAll((error) => Effect.as(coolDown(slot, error), false))
        )

  /** The first of the slots that is not put aside and serves the right chain. */
  const firstUsable = Effect.fnUntraced(function* (candidates: ReadonlyArray<ProviderSlot>) {
    for (const slot of candidates) {
      if (!isCoolingDown(slot, yield* Clock.currentTimeMillis) && (yield* usable(slot))) return slot
    }
    return undefined
  })

  /** All others that are not put aside and serve the right chain. */
  const usableOthers = Effect.fnUntraced(function* (than: Provider) {
    const found: Array<ProviderSlot> = []
    for (const slot of slots) {
      if (slot === slotOf(than) || isCoolingDown(slot, yield* Clock.currentTimeMillis)) continue
      if (yield* usable(slot)) found.push(slot)
    }
    return found
  })

  const believed = Effect.map(Clock.currentTimeMillis, (now) => (slot: ProviderSlot) => !isContradicted(slot, now))

  const serve = Effect.fnUntraced(function* (slot: ProviderSlot) {
    if (slot !== serving) {
      yield* Effect.logInfo("another provider is asked from now on").pipe(
        Effect.annotateLogs({ host: slot.provider.client.host, before: serving.provider.client.host })
      )
    }
    serving = slot
    return slot.provider
  })

  const current: Providers["current"] = Effect.gen(function* () {
    const isBelieved = yield* believed
    const candidates = [serving, ...slots.filter((one) => one !== serving)].filter(isBelieved)
    const slot = (yield* firstUsable(candidates)) ?? candidates.find(isLagging)
    if (slot !== undefined) return yield* serve(slot)
    const now = yield* Clock.currentTimeMillis
    const reasons = slots.flatMap((one) => reasonNotServing(one, now) ?? [])
    const [soonest] = reasons.sort((one, next) => one.until - next.until)
    // One that has gone well meanwhile can be used.
    return yield* soonest?.error ?? current
  })

  const failed = Effect.fn("Providers.failed")(function* (provider: Provider, error: RpcError | WrongChain) {
    const slot = failing(provider, error)
    const { blockRange: span } = slot.provider
    // A smaller part is asked for at once, as long as it becomes smaller, and unless the provider wants to be left alone.
    if (error._tag === "RpcError" && sizeErrors.has(error.reason) && span.blocks < slot.shrunkTo) {
      slot.shrunkTo = span.blocks
      if (error.retryAfter === undefined) return
    }
    yield* coolDown(slot, error)
    const now = yield* Clock.currentTimeMillis
    // Where none answers, the trouble is likely our own: the first one that is back is not the only one yet.
    if (slots.every((one) => isCoolingDown(one, now))) for (const one of slots) endSilence(one, now)
  })

  const succeeded = (provider: Provider): void => {
    const slot = slotOf(provider)
    slot.failures = 0
    slot.shrunkTo = Number.POSITIVE_INFINITY
    slot.cooldown = undefined
  }

  const verify = Effect.fnUntraced(function* (provider: Provider) {
    const slot = slotOf(provider)
    slot.sameGenesis = false
    yield* check(slot)
  })

  const agree: Providers["agree"] = Effect.fnUntraced(function* (serving) {
    asksSince ??= yield* Clock.currentTimeMillis
    const clients = slots.map(({ provider }) => provider.client)
    return yield* corroborateGenesis(network, chain, clients, serving.index, asksSince)
  })

  const providers: Providers = {
    current,
    agree,
    began: (first) => {
      genesis = first
      for (const slot of slots) slot.checked = false
    },
    verify,
    failed,
    contradicted: (provider, detail) => contradict(slotOf(provider), detail),
    other: Effect.fnUntraced(function* (than: Provider) {
      const others = slots.filter((slot) => slot !== slotOf(than))
      const slot = (yield* firstUsable(others.filter(yield* believed))) ?? (yield* firstUsable(others))
      return slot?.provider
    }),
    others: Effect.fnUntraced(function* (than: Provider) {
      const found = yield* usableOthers(than)
      const first = found.filter(yield* believed)
      return (first.length > 0 ? first : found).map(({ provider }) => provider)
    }),
    witnesses: (than) => Effect.map(usableOthers(than), (found) => found.map(({ provider }) => provider)),
    succeeded,
    answered: (provider) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        succeeded(provider)
        endSilence(slotOf(provider), now)
      }),
    silence: (than) => Math.min(...slots.filter((slot) => slot !== slotOf(than)).map(({ silence }) => silence.millis)),
    silentSince: (than, now) => {
      const others = slots.filter((slot) => slot !== slotOf(than))
      // The clock was set back: nothing is known of how long ago that was.
      for (const slot of others) slot.testifiedAt = Math.min(slot.testifiedAt, now)
      return Math.max(...others.map(({ testifiedAt }) => testifiedAt))
    },
    nextTry: (now) => Math.min(...slots.map((slot) => mayServeAt(slot, now))),
    health: (now) => slots.map((slot) => providerHealthOf(slot, slot === serving, now)),
    all: slots.map(({ provider }) => provider)
  }
  return providers
})
