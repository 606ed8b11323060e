import { Clock, Duration, Effect, Either, Random } from "effect"
import { type Network, networkKey } from "../Domain/Chain.ts"
import type { ChainSettings } from "../Settings.ts"
import { type Instruments, Metrics } from "../Telemetry/Metrics.ts"
import { type Agreed, agreedChain, checkIdentity, type WrongChain } from "./chainIdentity.ts"
import { makeClient, type Reply, type Rpc, type RpcClient, type RpcError, type RpcReason } from "./Rpc.ts"
import { Span } from "./Span.ts"

/** How long a provider is left alone after its first failure; it doubles with each that follows, up to the longest. */
const firstBackOff = 250
const longestBackOff = 10_000
/** The longest that a provider may ask to be left alone for. */
const longestRetryAfter = Duration.toMillis("5 minutes")
/** After which a provider of another chain is looked at again. */
const wrongChainInterval = Duration.toMillis("10 seconds")
/** After which a provider that is behind is looked at again. */
const behindInterval = Duration.toMillis("5 seconds")
/** Blocks to read at once where only logs are read, and no block. */
const logsOnly = 2_000
/** Not the provider's health, but the size of what it was asked for: the next part is smaller. */
const sizeErrors: ReadonlySet<RpcReason> = new Set(["range", "too_large"])

/** One of a chain's providers. */
export interface Provider {
  readonly client: RpcClient
  /** How many blocks it lets be read at once. */
  readonly span: Span
  /** Its place in `rpc_urls`. */
  readonly index: number
}

/** The providers of one chain in one mode: one serves, until it fails. Times are Unix milliseconds. */
export interface Providers {
  /**
   * The provider to read from. Its chain id has been checked since it last failed, and its first block once. Fails, when
   * none can be used, with the error of the one that may come back first.
   */
  readonly current: Effect.Effect<Provider, RpcError | WrongChain>
  /** Another one that can be used, checked like `current`; undefined when there is none. */
  readonly other: (than: Provider) => Effect.Effect<Provider | undefined>
  /** All others that can be used, checked like `current`. */
  readonly others: (than: Provider) => Effect.Effect<ReadonlyArray<Provider>>
  /** Which chain this is, by the word of all its providers. Fails where `serving` does not tell. */
  readonly agree: (serving: Provider) => Effect.Effect<Agreed, RpcError>
  /** Reading has begun on the chain with that first block: who has another one serves another chain. */
  readonly began: (genesis: string | undefined) => void
  /** Asks once more whether it serves the right chain: what looks like a reorg may be another chain's blocks. */
  readonly verify: (provider: Provider) => Effect.Effect<void, RpcError | WrongChain>
  /** It failed: it is left alone for a while. One that is only behind is used where there is no other. */
  readonly failed: (provider: Provider, error: RpcError | WrongChain) => Effect.Effect<void>
  /** What was asked of it went well. */
  readonly succeeded: (provider: Provider) => void
  /** It has answered a question about what another one has reported: its failures are forgotten. */
  readonly testified: (provider: Provider) => Effect.Effect<void>
  /** When one of the others last did, or all were made; not after `now`. */
  readonly silentSince: (than: Provider, now: number) => number
  /** When `current` may work: `now`, or later if none can be used until then. */
  readonly nextTry: (now: number) => number
  readonly health: (now: number) => ReadonlyArray<ProviderHealth>
  readonly all: ReadonlyArray<Provider>
}

export interface ProviderHealth {
  readonly host: string
  /** It is not put aside, and if it is the one that serves, its last answer was good. */
  readonly healthy: boolean
  /** Why it is not. */
  readonly reason?: string
}

/** Why and for how long a provider is left alone. A clock that is before `since` was set back: it counts for nothing. */
interface Aside {
  readonly error: RpcError | WrongChain
  readonly since: number
  readonly until: number
}

/** A provider and what is known of it. */
interface Slot {
  readonly provider: Provider
  /** The chain id was the right one since the last failure. */
  checked: boolean
  /** The first block was the right one, or is not kept; false while none is known. */
  sameGenesis: boolean
  /** Failures since it last went well. */
  failures: number
  /** The smallest span that a size error has led to since it last went well. */
  shrunkTo: number
  /** The last failure, until it goes well again. */
  aside: Aside | undefined
  /** When it last testified, or was made. */
  testifiedAt: number
}

const isAside = ({ aside }: Slot, now: number): boolean =>
  aside !== undefined && now >= aside.since && now < aside.until

const isBehind = ({ aside }: Slot): boolean => aside?.error._tag === "RpcError" && aside.error.reason === "behind"

/** How long to leave a provider alone, in milliseconds. */
const backOff = Effect.fnUntraced(function* (error: RpcError | WrongChain, failures: number) {
  if (error._tag === "WrongChain") return wrongChainInterval
  if (error.reason === "behind") return behindInterval
  const jitter = yield* Random.nextRange(0.8, 1.2)
  const wait = Math.min(longestBackOff, Math.ceil(firstBackOff * 2 ** (failures - 1) * jitter))
  return Math.max(wait, Math.min(error.retryAfter ?? 0, longestRetryAfter))
})

const makeSlot = (client: RpcClient, span: Span, index: number, now: number): Slot => ({
  provider: { client, span, index },
  checked: false,
  sameGenesis: false,
  failures: 0,
  shrunkTo: Number.POSITIVE_INFINITY,
  aside: undefined,
  testifiedAt: now
})

const healthOf = (slot: Slot, serves: boolean, now: number): ProviderHealth => {
  const { host } = slot.provider.client
  const error = serves || isAside(slot, now) ? slot.aside?.error : undefined
  if (error === undefined) return { host, healthy: true }
  return { host, healthy: false, reason: error._tag === "RpcError" ? error.summary : error.message }
}

/** Notes a failure, and leaves the provider alone for a while. */
const putAside = Effect.fnUntraced(function* (slot: Slot, error: RpcError | WrongChain) {
  if (error._tag === "WrongChain" || error.reason !== "behind") {
    slot.checked = false
    slot.failures++
  }
  const since = yield* Clock.currentTimeMillis
  slot.aside = { error, since, until: since + (yield* backOff(error, slot.failures)) }
  yield* Effect.logDebug("a provider is put aside").pipe(
    Effect.annotateLogs({ host: slot.provider.client.host, reason: error.message })
  )
})

/** The same client, whose calls are counted as those of a network. */
const counted = (network: Network, { rpcCalls }: Instruments, { counters, host, sendEach }: RpcClient): RpcClient => {
  const count = (method: string, reason: RpcReason | "ok") =>
    rpcCalls.add([network.chain, network.mode, method, reason])
  const outcomeOf = (reply: Reply | undefined) =>
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
  const newSpan = () => new Span(chain.chain === "ethereum" ? undefined : logsOnly)
  const metrics = yield* Metrics
  const madeAt = yield* Clock.currentTimeMillis
  const slots = chain.rpcUrls.map((url, index) =>
    makeSlot(counted(network, metrics, rpc.client(url)), newSpan(), index, madeAt)
  )
  const [first] = slots
  if (first === undefined) return yield* Effect.dieMessage(`chains.${networkKey(network)} has no rpc_urls`)
  let serving = first
  let genesis = storedGenesis
  /** Since when all have been asked for the chain's first block. */
  let asksSince: number | undefined
  const slotOf = ({ index }: Provider): Slot => slots[index] ?? first

  /** Fails unless the provider serves the right chain. */
  const check = Effect.fnUntraced(function* (slot: Slot) {
    const began = genesis === undefined ? [] : [{ number: 0, hash: genesis }]
    const known = [...chain.knownBlocks.filter(({ hash }) => hash !== genesis), ...began]
    yield* checkIdentity(network, chain.chainId, slot.sameGenesis ? [] : known, slot.provider.client)
    slot.sameGenesis = known.some(({ number }) => number === 0)
    slot.checked = true
  })

  const usable = (slot: Slot) =>
    slot.checked
      ? Effect.succeed(true)
      : check(slot).pipe(
          Effect.as(true),
          Effect.catchAll((error) => Effect.as(putAside(slot, error), false))
        )

  /** The first of the slots that is not put aside and serves the right chain. */
  const firstUsable = Effect.fnUntraced(function* (candidates: ReadonlyArray<Slot>) {
    for (const slot of candidates) {
      if (!isAside(slot, yield* Clock.currentTimeMillis) && (yield* usable(slot))) return slot
    }
    return undefined
  })

  const serve = Effect.fnUntraced(function* (slot: Slot) {
    if (slot !== serving) {
      yield* Effect.logInfo("another provider is asked from now on").pipe(
        Effect.annotateLogs({ host: slot.provider.client.host, before: serving.provider.client.host })
      )
    }
    serving = slot
    return slot.provider
  })

  const current: Providers["current"] = Effect.gen(function* () {
    const slot = (yield* firstUsable([serving, ...slots.filter((one) => one !== serving)])) ?? slots.find(isBehind)
    if (slot !== undefined) return yield* serve(slot)
    const errors = slots.flatMap(({ aside }) => (aside === undefined ? [] : [aside]))
    const [soonest] = errors.sort((one, next) => one.until - next.until)
    // One that has gone well meanwhile can be used.
    return yield* soonest?.error ?? current
  })

  const failed = Effect.fn("Providers.failed")(function* (provider: Provider, error: RpcError | WrongChain) {
    const slot = slotOf(provider)
    // A smaller part is asked for at once, as long as it becomes smaller, and unless the provider wants to be left alone.
    if (error._tag === "RpcError" && sizeErrors.has(error.reason) && provider.span.blocks < slot.shrunkTo) {
      slot.shrunkTo = provider.span.blocks
      if (error.retryAfter === undefined) return
    }
    yield* putAside(slot, error)
  })

  const succeeded = (provider: Provider): void => {
    const slot = slotOf(provider)
    slot.failures = 0
    slot.shrunkTo = Number.POSITIVE_INFINITY
    slot.aside = undefined
  }

  const verify = Effect.fnUntraced(function* (provider: Provider) {
    const slot = slotOf(provider)
    slot.sameGenesis = false
    yield* check(slot)
  })

  const agree: Providers["agree"] = Effect.fnUntraced(function* (serving) {
    asksSince ??= yield* Clock.currentTimeMillis
    const clients = slots.map(({ provider }) => provider.client)
    return yield* agreedChain(network, chain, clients, serving.index, asksSince)
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
    other: (than) => Effect.map(firstUsable(slots.filter((slot) => slot !== slotOf(than))), (slot) => slot?.provider),
    others: Effect.fnUntraced(function* (than: Provider) {
      const found: Array<Provider> = []
      for (const slot of slots) {
        if (slot === slotOf(than) || isAside(slot, yield* Clock.currentTimeMillis)) continue
        if (yield* usable(slot)) found.push(slot.provider)
      }
      return found
    }),
    succeeded,
    testified: (provider) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        succeeded(provider)
        slotOf(provider).testifiedAt = now
      }),
    silentSince: (than, now) => {
      const others = slots.filter((slot) => slot !== slotOf(than))
      // The clock was set back: nothing is known of how long ago that was.
      for (const slot of others) slot.testifiedAt = Math.min(slot.testifiedAt, now)
      return Math.max(...others.map(({ testifiedAt }) => testifiedAt))
    },
    nextTry: (now) =>
      slots.some((slot) => !isAside(slot, now) || isBehind(slot))
        ? now
        : Math.min(...slots.map(({ aside }) => aside?.until ?? now)),
    health: (now) => slots.map((slot) => healthOf(slot, slot === serving, now)),
    all: slots.map(({ provider }) => provider)
  }
  return providers
})
