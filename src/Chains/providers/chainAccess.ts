/** How a command reaches a chain by itself: through its configured providers, of which another serves where one fails. */
import { Data, Effect, Either, Schedule } from "effect"
import { type Network, networkKey } from "../../Domain/Chain.ts"
import type { ChainSettings, SettingsShape } from "../../Settings.ts"
import { sendBatch } from "../rpc/methods.ts"
import { Rpc, type RpcClient } from "../rpc/Rpc.ts"
import { RpcError } from "../rpc/RpcError.ts"
import { getPricedHead, type PricedHead } from "../rpc/sendingMethods.ts"
import type { WrongChain } from "./chainIdentity.ts"
import { makeProviders, type Provider, type Providers } from "./Providers.ts"

/** A configured chain, and its providers. */
export interface ChainAccess {
  readonly chain: ChainSettings
  readonly providers: Providers
}

class UnknownNetwork extends Data.TaggedError("UnknownNetwork")<{ readonly message: string }> {}

export const accessTo = Effect.fn("ChainAccess.accessTo")(function* (settings: SettingsShape, network: Network) {
  const chain = settings.chains.find((one) => one.chain === network.chain && one.mode === network.mode)
  if (chain === undefined) {
    const known = settings.chains.map(networkKey).join(", ")
    return yield* new UnknownNetwork({ message: `chains.${networkKey(network)} is not configured: there are ${known}` })
  }
  const patience = settings.payments.soleProviderPatience
  const providers = yield* makeProviders(network, chain, yield* Rpc, undefined, patience)
  const access: ChainAccess = { chain, providers }
  return access
})

/**
 * At once by each other provider, while those that failed are in cooldown; then four more attempts within about eight seconds.
 * Whatever a provider fails by, another one may be right.
 */
const attemptsOf = ({ providers }: ChainAccess) =>
  Schedule.andThen(
    Schedule.recurs(providers.all.length - 1),
    Schedule.exponential("500 millis").pipe(Schedule.jittered, Schedule.intersect(Schedule.recurs(4)))
  )

type Read<A, E> = (client: RpcClient) => Effect.Effect<A, RpcError | E>

const isOfProvider = (error: unknown): error is RpcError => error instanceof RpcError

/** Reads by one provider: where that fails, it is in cooldown and another one serves; what succeeds ends a silence of before. */
const readBy = <A, E>({ providers }: ChainAccess, provider: Provider, read: Read<A, E>) =>
  Effect.tapBoth(read(provider.client), {
    onSuccess: () => providers.answered(provider),
    onFailure: (error) => (isOfProvider(error) ? providers.failed(provider, error) : Effect.void)
  })

/** Reads by the serving provider; where that fails, by another one or again. */
export const reading = <A, E = never>(
  access: ChainAccess,
  read: Read<A, E>
): Effect.Effect<A, RpcError | WrongChain | E> =>
  access.providers.current.pipe(
    Effect.flatMap((provider) => readBy(access, provider, read)),
    Effect.retry({ schedule: attemptsOf(access), while: isOfProvider })
  )

/**
 * Reads by so many providers, the serving one first, or by all that can be asked where there are fewer. `mustBeTwo`: fails while
 * a second one is configured and silent, for less than the patience after which one decides alone. `differ`: on what two that
 * should say the same differ; fails while they do.
 */
export const readingBy = Effect.fn("ChainAccess.readingBy")(function* <A, E = never>(
  access: ChainAccess,
  {
    differ = () => undefined,
    many = 2,
    mustBeTwo = false
  }: {
    readonly differ?: ((one: A, other: A) => string | undefined) | undefined
    readonly many?: number
    readonly mustBeTwo?: boolean
  },
  read: Read<A, E>
) {
  const { providers } = access
  const attempt = Effect.gen(function* () {
    const serving = yield* providers.current
    const own = yield* readBy(access, serving, read)
    const found: [A, ...Array<A>] = [own]
    for (const other of yield* providers.witnesses(serving)) {
      if (found.length >= many) break
      const answer = yield* Effect.either(readBy(access, other, read))
      if (Either.isRight(answer)) found.push(answer.right)
    }
    const { host } = serving.client
    const [detail] = found.slice(1).flatMap((other) => differ(own, other) ?? [])
    if (detail !== undefined) {
      const remedy = "look in a block explorer which one is wrong, take that one out of rpc_urls, and run this again"
      return yield* new RpcError({ host, method: "a comparison", reason: "inconsistent", detail, remedy })
    }
    if (found.length > 1 || !mustBeTwo || providers.decidesAlone(serving)) return found
    return yield* new RpcError({
      ...{ host, method: "a second provider", reason: "unreachable" },
      detail: "no other provider of rpc_urls answers, and one alone does not decide"
    })
  })
  return yield* Effect.retry(attempt, { schedule: attemptsOf(access), while: isOfProvider })
})

/** The head, with the lower base fee of two providers: a lied one makes nothing dearer. */
export const readPricedHead = (access: ChainAccess) =>
  Effect.map(
    readingBy(access, {}, (client) => sendBatch(client, [getPricedHead])),
    ([[head], [other] = [head]]): PricedHead =>
      other.baseFee < head.baseFee ? { ...head, baseFee: other.baseFee } : head
  )
