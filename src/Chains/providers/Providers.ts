/**
 * The providers of one network: which one serves, which others can be asked for a second opinion, and how healthy each
 * is. A provider is used only after its chain id, and once its first block, were checked. After a failure it is in
 * cooldown and another one serves; it is checked again before it returns. Watchers, corroboration, repair and quotes of
 * gas ask through it; /readyz and the metrics show its health.
 */
import { Clock, Duration, Effect, Either } from "effect"
import { chainTraits, type Network, networkKey } from "../../Domain/Chain.ts"
import type { ChainSettings } from "../../Settings.ts"
import { type Instruments, Metrics } from "../../Telemetry/Metrics.ts"
import { type BlockHeader, getChainId, getHead, sendBatch } from "../rpc/methods.ts"
import { type CallResult, makeClient, type Rpc, type RpcClient, type RpcRequest } from "../rpc/Rpc.ts"
import { RpcError, type RpcReason } from "../rpc/RpcError.ts"
import { BlockRange } from "./BlockRange.ts"
import { checkIdentity, corroborateGenesis, type GenesisConsensus, WrongChain } from "./chainIdentity.ts"
import { behind, type Provider, type ProviderHealth, ProviderSlot } from "./providerHealth.ts"

export type { Provider } from "./providerHealth.ts"

/** The block range where only logs are read, and no full blocks. */
const logsOnly = 2_000
/** Reasons that concern the size of a request, not the provider's health: the next block range is smaller. */
const sizeErrors: ReadonlySet<RpcReason> = new Set(["range", "too_large"])

/** Blocks and seconds by which the head of one that does not serve may be older than the serving one's. */
const usualLag = { blocks: 5, seconds: 10 }

/** How long a second provider may take for one part of its evidence: the watcher reads nothing new meanwhile. */
const longest = Duration.minutes(1)

/** Fails as `timeout` where another provider than the serving one takes too long, though each of its calls is in time. */
export const inTime = <A, E, R>({ client: { host } }: Provider, method: string, evidence: Effect.Effect<A, E, R>) =>
  Effect.timeoutFail(evidence, {
    duration: longest,
    onTimeout: () =>
      new RpcError({ host, method, reason: "timeout", detail: `it took more than ${Duration.format(longest)} in all` })
  })

/** The providers of one chain in one mode. One serves until it fails. Times are Unix milliseconds. */
export interface Providers {
  /**
   * The provider to read from. Its chain id has been checked since it last failed, and its first block once. Where none
   * can be used, fails with the error of the one whose cooldown ends first.
   */
  readonly current: Effect.Effect<Provider, RpcError | WrongChain>
  /** Another provider that can be used, checked like `current`; undefined where there is none. */
  readonly other: (than: Provider) => Effect.Effect<Provider | undefined>
  /** All others that can be used, checked like `current`. Contradicted ones only where there is no other. */
  readonly others: (than: Provider) => Effect.Effect<ReadonlyArray<Provider>>
  /** All others that can be used, contradicted ones included: callers need a quorum of them, never a single one. */
  readonly witnesses: (than: Provider) => Effect.Effect<ReadonlyArray<Provider>>
  /** The same, with those in cooldown for a response: that they lack a block, or have another one there. */
  readonly answering: (than: Provider) => Effect.Effect<ReadonlyArray<Provider>>
  /** Which chain this is, by the first block that all providers report. Fails where `serving` does not respond. */
  readonly agree: (serving: Provider) => Effect.Effect<GenesisConsensus, RpcError | WrongChain>
  /** Notes that reading has begun on the chain with that first block: providers of another one serve another chain. */
  readonly began: (genesis: string | undefined) => void
  /** Checks again that it serves the right chain: what looks like a reorg may be another chain's blocks. */
  readonly verify: (provider: Provider) => Effect.Effect<void, RpcError | WrongChain>
  /** Notes a failure of this provider, or of the one that the error names: it goes into cooldown. */
  readonly failed: (provider: Provider, error: RpcError | WrongChain) => Effect.Effect<void>
  /**
   * Notes that others deny what it has reported: for an hour it decides nothing alone, and serves only where each
   * provider is contradicted.
   */
  readonly contradicted: (provider: Provider, detail: string) => Effect.Effect<void>
  /** Notes that a request succeeded. */
  readonly succeeded: (provider: Provider) => void
  /** Notes that it gave evidence on what another one has reported: its failures and its silence end. */
  readonly answered: (provider: Provider) => Effect.Effect<void>
  /**
   * Whether it decides alone, as an only provider does: all others were asked for the patience without a response, and
   * not each provider is contradicted.
   */
  readonly decidesAlone: (provider: Provider) => boolean
  /** Whether each provider is contradicted by others: one serves on, and none decides alone. */
  readonly areAllContradicted: () => boolean
  /** Since when the others have not responded, where the serving provider decides alone; undefined where it does not. */
  readonly aloneSince: (now: number) => number | undefined
  /** When `current` may succeed: `now`, or later while none can be used. */
  readonly nextTry: (now: number) => number
  /** Asks each that does not serve for its chain id and head, so that `health` and the log tell what is wrong before that. */
  readonly look: Effect.Effect<void>
  /** The health of each provider, in the order of `rpc_urls`. */
  readonly health: (now: number) => ReadonlyArray<ProviderHealth>
  readonly all: ReadonlyArray<Provider>
}

/** The same client, with its calls counted in the metrics of a network. `limited` is called at each that was one too many. */
const counted = (
  { chain, mode }: Network,
  { rpcCalls }: Instruments,
  { counters, host, sendEach }: RpcClient,
  limited: (now: number) => void
) => {
  const count = (calls: ReadonlyArray<RpcRequest>, outcomeAt: (i: number) => RpcReason | "ok") =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      for (const [i, { method }] of calls.entries()) {
        const outcome = outcomeAt(i)
        if (outcome === "rate_limited") limited(now)
        rpcCalls.inc({ chain, mode, host, method, outcome })
      }
    })
  const outcomeOf = (reply: CallResult | undefined) =>
    reply === undefined || Either.isRight(reply) ? "ok" : reply.left.reason
  return makeClient({
    counters,
    host,
    sendEach: (calls) =>
      Effect.tapBoth(sendEach(calls), {
        onSuccess: (replies) => count(calls, (i) => outcomeOf(replies[i])),
        onFailure: ({ reason }) => count(calls, () => reason)
      })
  })
}

/**
 * The providers of a chain, in the order of its `rpcUrls`. `storedGenesis` is the hash of its first block; while it is
 * undefined, no provider is checked against it. `patience`: how long the others may be silent before one decides alone.
 */
export const makeProviders = Effect.fn("Providers.make")(function* (
  network: Network,
  chain: ChainSettings,
  rpc: Rpc["Type"],
  storedGenesis: string | undefined,
  patience: Duration.Duration
) {
  const largest = chainTraits[chain.chain].readsFullBlocks ? undefined : logsOnly
  const metrics = yield* Metrics
  const slots = chain.rpcUrls.map((url, index) => {
    const client = counted(network, metrics, rpc.client(url), (now) => {
      slot.limitedAt = now
    })
    const slot: ProviderSlot = new ProviderSlot({ client, blockRange: new BlockRange(largest), index })
    return slot
  })
  const [first] = slots
  if (first === undefined) return yield* Effect.dieMessage(`chains.${networkKey(network)} has no rpc_urls`)
  let serving = first
  let areAllContradicted = false
  let genesis = storedGenesis
  /** When the chain's first block was first asked for. Unix milliseconds. */
  let askedSince: number | undefined
  const providersOf = (some: ReadonlyArray<ProviderSlot>) => some.map(({ provider }) => provider)
  const slotOf = ({ index }: Provider): ProviderSlot => slots[index] ?? first
  const othersThan = (than: Provider) => slots.filter((slot) => slot !== slotOf(than))
  /** The provider that failed: work on one provider may call another one too. */
  const slotOfFailure = (asked: Provider, { host }: RpcError | WrongChain): ProviderSlot =>
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
          Effect.catchAll((error) => Effect.as(slot.coolDown(error), false))
        )

  /** The first of the slots that is not in cooldown and serves the right chain. */
  const firstUsable = Effect.fnUntraced(function* (candidates: ReadonlyArray<ProviderSlot>) {
    for (const slot of candidates) {
      if (!slot.isCoolingDown(yield* Clock.currentTimeMillis) && (yield* usable(slot))) return slot
    }
    return undefined
  })

  /** All others that serve the right chain and are not in cooldown; `answering`: except for an answer about blocks. */
  const usableOthers = Effect.fnUntraced(function* (than: Provider, answering = false) {
    const now = yield* Clock.currentTimeMillis
    const isLeftOut = (slot: ProviderSlot) => (answering ? slot.isUnanswering(now) : slot.isCoolingDown(now))
    return yield* Effect.filter(othersThan(than), (one) => (isLeftOut(one) ? Effect.succeed(false) : usable(one)))
  })

  const believed = Effect.map(Clock.currentTimeMillis, (now) => (slot: ProviderSlot) => !slot.isContradicted(now))

  /** Those that may serve, the serving one first. */
  const eligible = (now: number) => {
    const inOrder = [serving, ...slots.filter((one) => one !== serving)]
    const found = inOrder.filter((slot) => !slot.isContradicted(now))
    // A chain's only provider may be contradicted by others that were configured before.
    areAllContradicted = found.length === 0 && slots.length > 1
    return found.length === 0 ? inOrder : found
  }

  /** Since when each other provider has not responded; undefined while the provider does not decide alone. */
  const silences = (provider: Provider) => {
    const since = othersThan(provider).map((slot) => slot.givenUpSince(Duration.toMillis(patience)))
    return areAllContradicted || since.includes(undefined) ? undefined : since.filter((at) => at !== undefined)
  }

  const serve = Effect.fnUntraced(function* (slot: ProviderSlot) {
    if (slot !== serving) {
      yield* Effect.logInfo("another provider serves from now on").pipe(
        Effect.annotateLogs({ host: slot.provider.client.host, before: serving.provider.client.host })
      )
    }
    serving = slot
    return slot.provider
  })

  const current: Providers["current"] = Effect.gen(function* () {
    const candidates = eligible(yield* Clock.currentTimeMillis)
    const slot = (yield* firstUsable(candidates)) ?? candidates.find(({ isLagging }) => isLagging)
    if (slot !== undefined) return yield* serve(slot)
    const reasons = candidates.flatMap(({ cooldown }) => cooldown ?? [])
    const [soonest] = reasons.sort((one, next) => one.until - next.until)
    // Without an error, a provider has succeeded meanwhile and can be used.
    return yield* soonest?.error ?? current
  })

  const failed = Effect.fn("Providers.failed")(function* (provider: Provider, error: RpcError | WrongChain) {
    const slot = slotOfFailure(provider, error)
    // A size error leads to a smaller block range at once, not to a cooldown, unless the provider asks to wait.
    const isOfSize = error._tag === "RpcError" && sizeErrors.has(error.reason)
    if (isOfSize && slot.hasShrunk() && error.retryAfter === undefined) return
    yield* slot.coolDown(error)
    const now = yield* Clock.currentTimeMillis
    // If none responds, this machine's network is likely down: the first one back must not count as the only provider.
    if (slots.every((one) => one.isSilent(now))) for (const one of slots) one.endSilence()
  })

  const verify = Effect.fnUntraced(function* (provider: Provider) {
    const slot = slotOf(provider)
    slot.sameGenesis = false
    yield* check(slot)
  })

  const agree: Providers["agree"] = Effect.fnUntraced(function* (serving) {
    askedSince ??= yield* Clock.currentTimeMillis
    const clients = slots.map(({ provider }) => provider.client)
    return yield* corroborateGenesis(network, chain, clients, serving.index, askedSince)
  })

  const lookAt = ({ provider }: ProviderSlot, newest: BlockHeader) =>
    Effect.gen(function* () {
      const [found, head] = yield* sendBatch(provider.client, [getChainId, getHead])
      const { host } = provider.client
      if (found !== chain.chainId) return yield* new WrongChain({ network, host, expected: chain.chainId, found })
      const blocks = newest.number - head.number
      if (blocks <= usualLag.blocks || newest.time - head.time < usualLag.seconds) return
      return yield* behind(provider, `its head is ${head.number}, ${blocks} blocks behind the serving provider's`)
    })

  const look: Providers["look"] = Effect.gen(function* () {
    const before = yield* Clock.currentTimeMillis
    const { provider } = serving
    const others = othersThan(provider).filter((slot) => !slot.isCoolingDown(before))
    // The serving one first: what the others have is at least as new. Its failure counts as at any other call.
    const lookAll = Effect.flatMap(sendBatch(provider.client, [getHead]), ([head]) =>
      Effect.forEach(
        others,
        (slot) =>
          Effect.map(Effect.either(lookAt(slot, head)), (seen) => {
            slot.found = Either.isLeft(seen) ? seen.left : undefined
          }),
        { concurrency: "unbounded" }
      )
    )
    if (others.length > 0) yield* Effect.catchAll(lookAll, (error) => failed(provider, error))
    const now = yield* Clock.currentTimeMillis
    for (const slot of slots) yield* slot.logChange(slot.health(slot === serving, now))
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
    contradicted: (provider, detail) => slotOf(provider).contradict(detail),
    other: Effect.fnUntraced(function* (than: Provider) {
      const others = othersThan(than)
      const slot = (yield* firstUsable(others.filter(yield* believed))) ?? (yield* firstUsable(others))
      return slot?.provider
    }),
    others: Effect.fnUntraced(function* (than: Provider) {
      const found = yield* usableOthers(than)
      const preferred = found.filter(yield* believed)
      return providersOf(preferred.length > 0 ? preferred : found)
    }),
    witnesses: (than) => Effect.map(usableOthers(than), providersOf),
    answering: (than) => Effect.map(usableOthers(than, true), providersOf),
    succeeded: (provider) => slotOf(provider).succeeded(),
    answered: (provider) =>
      Effect.sync(() => {
        slotOf(provider).succeeded()
        slotOf(provider).endSilence()
      }),
    decidesAlone: (provider) => silences(provider) !== undefined,
    areAllContradicted: () => areAllContradicted,
    aloneSince: (now) => {
      const since = silences(serving.provider) ?? []
      // After the clock was set back, a later time counts as now.
      return since.length === 0 ? undefined : Math.min(now, Math.max(...since))
    },
    nextTry: (now) => Math.min(...eligible(now).map((slot) => slot.mayServeAt(now))),
    look,
    health: (now) => slots.map((slot) => slot.health(slot === serving, now)),
    all: providersOf(slots)
  }
  return providers
})
