import { Duration, Effect, Either, Redacted } from "effect"
import { decodeAbiParameters, type Hex, hexToString } from "viem"
import { usedOn } from "../Chains/balances/AddressHistory.ts"
import { balancesByOverride } from "../Chains/rpc/balanceMethods.ts"
import {
  ethCall,
  getCode,
  getFullBlock,
  getHead,
  getHeader,
  getLogs,
  sendBatch,
  transferTopic
} from "../Chains/rpc/methods.ts"
import type { CallResult, RpcClient } from "../Chains/rpc/Rpc.ts"
import type { RpcError } from "../Chains/rpc/RpcError.ts"
import { findTagged } from "../Chains/watcher/finalityTags.ts"
import { intervalOf } from "../Chains/watcher/interval.ts"
import { idleTagInterval, policyTagInterval, tagInterval } from "../Chains/watcher/maintenance.ts"
import { chainTraits, type Mode, networkKey } from "../Domain/Chain.ts"
import { cut } from "../lib/text.ts"
import { refreshInterval } from "../Quotes/Prices.ts"
import { feedsOf } from "../Quotes/sources/chainlink.ts"
import type { TokenSettings } from "../Settings/configSchema.ts"
import { hdWallet } from "../Settings/hdWallet.ts"
import type { ChainSettings, SettingsShape } from "../Settings.ts"
import { type Finding, fail, failedCall, ok, warn } from "./Finding.ts"
import type { Seen } from "./providers.ts"

const day = Duration.toMillis("1 day")

/** Measured bytes of each kind of call, request and response bodies together. */
export interface Sizes {
  /** The head, and the header of the last scanned block. */
  readonly look: number
  /** Logs without a match, and the header of the last block of the range. */
  readonly read: number
  /** A block with its transactions; 0 on chains whose full blocks are not read. */
  readonly block: number
  /** A balance call. */
  readonly balances: number
}

/** Traffic of a day. */
interface Traffic {
  readonly calls: number
  readonly bytes: number
}

interface Projection {
  /** While payments are created on the chain all day. */
  readonly hot: Traffic
  /** While older ones are open. */
  readonly open: Traffic
  /** While none of the mode is, and addresses are still watched. */
  readonly idle: Traffic
}

/** Intervals in milliseconds; of balances and prices, times a day. */
interface Intervals {
  readonly look: number
  readonly tags: number
  readonly balances: number
  /** Reads of price feeds a day at most: none without Chainlink among the sources. */
  readonly prices: number
}

const trafficAt = (intervals: Intervals, blocks: number, sizes: Sizes): Traffic => {
  const looks = day / intervals.look
  // A poll of an unchanged head reads nothing.
  const reads = Math.min(looks, blocks)
  const wholeBlocks = sizes.block > 0 ? blocks : 0
  // With each tag the verification pass reads the blocks that have become deep.
  const tags = Math.min(day / Math.max(intervals.tags, intervals.look), blocks)
  return {
    calls: Math.round(2 * looks + 2 * reads + wholeBlocks + 3 * tags + intervals.balances + intervals.prices),
    bytes: Math.round(
      looks * sizes.look +
        reads * sizes.read +
        wholeBlocks * sizes.block +
        tags * (sizes.look / 2 + sizes.read) +
        intervals.balances * sizes.balances
    )
  }
}

/**
 * The calls of a watcher to its providers in a day, with up to a thousand open payments in the native coin, which fit
 * into one balance call. `blockSeconds` is the time from one block to the next.
 */
export const project = (chain: ChainSettings, blockSeconds: number, sizes: Sizes): Projection => {
  const { balanceInterval, policies } = chain
  const prices = feedsOf(chain) === undefined ? 0 : day / Duration.toMillis(refreshInterval)
  const at = (activity: "hot" | "open" | "idle"): Traffic => {
    const look = intervalOf(chain, activity)
    const withOpen = {
      tags: policies.length > 0 ? policyTagInterval : tagInterval,
      balances: day / Math.max(Duration.toMillis(balanceInterval), look)
    }
    const rest = activity === "idle" ? { tags: idleTagInterval, balances: 1 } : withOpen
    return trafficAt({ look, prices, ...rest }, day / 1000 / blockSeconds, sizes)
  }
  return { hot: at("hot"), open: at("open"), idle: at("idle") }
}

/** Blocks over which the block time is measured. */
const measuredBlocks = 1_000
/** Indexes with a history that are listed at most. */
const shownIndexes = 20

/** First four bytes of keccak256("decimals()") and keccak256("symbol()"). */
const decimalsCall = "0x313ce567"
const symbolCall = "0x95d89b41"
const longestSymbol = 40

/** A contract's symbol: a string, or bytes32 as early tokens have it. */
const readSymbol = (result: unknown): string | undefined => {
  if (typeof result !== "string") return undefined
  const text = Either.try(() => decodeAbiParameters([{ type: "string" }], result as Hex)[0])
  const word = Either.try(() => hexToString(result as Hex, { size: 32 }))
  return Either.getOrUndefined(
    Either.map(
      Either.orElse(text, () => word),
      (symbol) => cut(symbol, longestSymbol)
    )
  )
}

/** Tether's contracts call themselves USDT, USD₮, USDT0 or USD₮0. */
const isSymbol = (found: string | undefined, symbol: string): boolean => {
  const plain = found?.replace("₮", "T")
  return plain === symbol || (symbol === "USDT" && plain === "USDT0")
}

const examineToken = Effect.fn("Doctor.token")(function* (
  key: string,
  client: RpcClient,
  { address, decimals, symbol }: TokenSettings
) {
  const name = `${key} ${symbol}`
  const [code, foundDecimals, foundSymbol] = yield* client.sendEach([
    getCode(address),
    ethCall({ to: address, data: decimalsCall }),
    ethCall({ to: address, data: symbolCall })
  ])
  const remedy = `check [chains.${key}.tokens.${symbol}]: compare the address with the issuer's`
  if (code === undefined || Either.isLeft(code)) {
    return code === undefined ? fail(name, "no response", remedy) : failedCall(name, code.left, "ask another provider")
  }
  if (code.right === "0x") return fail(name, `there is no contract at ${address}`, remedy)
  const resultOf = (reply: CallResult | undefined) => (reply && Either.isRight(reply) ? reply.right : undefined)
  const [realDecimals, realSymbol] = [Number(resultOf(foundDecimals)), readSymbol(resultOf(foundSymbol))]
  if (!(realDecimals === decimals)) {
    const said = Number.isNaN(realDecimals)
      ? "the contract does not give its decimals"
      : `it has ${realDecimals} decimals`
    return fail(name, `${said}, and ${decimals} are configured`, remedy)
  }
  const finding = `${address} calls itself ${JSON.stringify(realSymbol ?? "")}, with ${decimals} decimals`
  return isSymbol(realSymbol, symbol) ? ok(name, finding) : warn(name, finding, remedy)
})

/** Checks the contracts of a chain's tokens through a usable provider: code, decimals and symbol. */
export const examineTokens = Effect.fn("Doctor.tokens")(function* (chain: ChainSettings, { client }: Seen) {
  const key = networkKey(chain)
  return yield* Effect.forEach(
    chain.tokens,
    (token) =>
      examineToken(key, client, token).pipe(
        Effect.catchAll((error) => Effect.succeed(failedCall(`${key} ${token.symbol}`, error, "ask another provider")))
      ),
    { concurrency: 2 }
  )
})

/** Checks the block tags that a chain's policies require: at least one usable provider must know each. */
export const examinePolicies = Effect.fn("Doctor.policies")(function* (
  { policies, ...chain }: ChainSettings,
  usable: ReadonlyArray<Seen>
) {
  const key = networkKey(chain)
  return yield* Effect.forEach(
    new Set(policies.map((policy) => policy.require)),
    (tag) =>
      Effect.gen(function* () {
        const name = `${key} policy ${tag}`
        const found = yield* Effect.forEach(usable, (seen) => Effect.either(findTagged(seen, tag)), {
          concurrency: "unbounded"
        })
        const [block] = found.flatMap((one) => (Either.isRight(one) && one.right !== undefined ? [one.right] : []))
        if (block !== undefined) return ok(name, `the newest ${tag} block is ${block.number}`)
        const [error] = found.flatMap((one) => (Either.isLeft(one) ? [one.left] : []))
        const remedy = `add a provider to rpc_urls that serves it, or take the policy out of [chains.${key}] and raise confirmations`
        return error !== undefined && found.every(Either.isLeft)
          ? failedCall(name, error, "ask another provider")
          : fail(
              name,
              `no provider knows the tag "${tag}": payments above the policy's amount are never confirmed`,
              remedy
            )
      }),
    { concurrency: 1 }
  )
})

/** Bytes sent and received by a call. */
const bytesOf = (client: RpcClient, exchange: Effect.Effect<unknown, unknown>) =>
  Effect.gen(function* () {
    const before = client.counters.sent + client.counters.received
    yield* Effect.ignore(exchange)
    return client.counters.sent + client.counters.received - before
  })

const measureSizes = Effect.fn("Doctor.sizes")(function* (chain: ChainSettings, { client, head }: Seen) {
  const [token] = chain.tokens
  const { address } = token ?? { address: `0x${"0".repeat(39)}1` }
  const filter = { address: [address], topics: [transferTopic, null, `0x${"0".repeat(63)}1`] }
  const sizes: Sizes = {
    look: yield* bytesOf(client, sendBatch(client, [getHead, getHeader(head.number)])),
    read: yield* bytesOf(
      client,
      sendBatch(client, [getLogs(head.number, head.number, filter), getHeader(head.number)])
    ),
    block: chainTraits[chain.chain].readsFullBlocks
      ? yield* bytesOf(client, sendBatch(client, [getFullBlock(head.number)]))
      : 0,
    balances: yield* bytesOf(client, sendBatch(client, [balancesByOverride([address], head)]))
  }
  return sizes
})

/** Two significant digits: the estimate is not more precise. */
const roughly = (value: number): string => Number(value.toPrecision(2)).toLocaleString("en-US")
const shown = ({ bytes, calls }: Traffic) => `${roughly(calls)} calls and ${roughly(bytes / 1e6)} MB`

/** Estimates calls and bytes a day at the configured intervals, from the chain's current blocks. */
export const examineCost = Effect.fn("Doctor.cost")(function* (chain: ChainSettings, seen: Seen) {
  const { client, head } = seen
  const name = `${networkKey(chain)} cost`
  const back = Math.min(measuredBlocks, head.number)
  const [earlier] = yield* sendBatch(client, [getHeader(head.number - back)])
  // A local chain may mine many blocks in one second.
  const blockSeconds = Math.max(0.1, (head.time - earlier.time) / Math.max(1, back))
  const { hot, idle, open } = project(chain, blockSeconds, yield* measureSizes(chain, seen))
  const others = `${shown(open)} while older ones are open, ${shown(idle)} while none is`
  return ok(name, `about ${shown(hot)} a day while payments are created all day, ${others}`)
})

/** The next addresses of a wallet that have a history. */
interface LookedAhead {
  /** The index after the last one that was checked. */
  readonly to: number
  /** Indexes with a history by network; or why the network could not be asked. */
  readonly found: ReadonlyMap<string, Either.Either<ReadonlyArray<number>, RpcError>>
}

/** Look-aheads that are checked at most: a provider may claim a history of every address. */
const maxLookAheads = 10

/** Checks the next addresses on all chains until `size` addresses in a row have no history on any. */
const lookAhead = Effect.fnUntraced(function* (
  size: number,
  address: (index: number) => string,
  first: number,
  chains: ReadonlyArray<readonly [ChainSettings, Seen]>
) {
  const found = new Map<string, Either.Either<ReadonlyArray<number>, RpcError>>()
  let [to, unused] = [first, first]
  while (to < unused + size && to < first + maxLookAheads * size) {
    const indexes = Array.from({ length: unused + size - to }, (_, i) => to + i)
    const addresses = indexes.map(address)
    yield* Effect.forEach(
      chains,
      ([chain, { client, head }]) =>
        Effect.gen(function* () {
          const before = found.get(networkKey(chain)) ?? Either.right([])
          if (Either.isLeft(before)) return
          const used = yield* Effect.either(usedOn(chain, client, addresses, head))
          const more = Either.map(used, (all) => all.map((one) => indexes[addresses.indexOf(one)] ?? to))
          found.set(
            networkKey(chain),
            Either.map(more, (all) => [...before.right, ...all])
          )
        }),
      { concurrency: "unbounded", discard: true }
    )
    to += indexes.length
    for (const each of found.values()) {
      if (Either.isRight(each)) unused = Math.max(unused, ...each.right.map((index) => index + 1))
    }
  }
  return { to, found } satisfies LookedAhead
})

/** Checks the wallet of a mode: a history at one of its next addresses means that its seed is used elsewhere too. */
export const examineWallet = Effect.fn("Doctor.wallet")(function* (
  settings: SettingsShape,
  mode: Mode,
  nextIndex: (fingerprint: string) => number,
  chains: ReadonlyArray<readonly [ChainSettings, Seen]>
) {
  const xpub = settings.wallets[mode]
  const name = `${mode} wallet`
  const asked = chains.filter(([chain]) => chain.mode === mode)
  if (xpub === undefined || asked.length === 0) return []
  const wallet = hdWallet(Redacted.value(xpub))
  const first = nextIndex(wallet.fingerprint)
  const { found, to } = yield* lookAhead(settings.payments.lookAhead, wallet.address, first, asked)
  const indexes = `the indexes from ${first} to ${to - 1}`
  return Array.from(found, ([key, used]): Finding => {
    if (Either.isLeft(used)) return failedCall(`${name} on ${key}`, used.left, "ask another provider")
    const { length } = used.right
    if (length === 0) return ok(`${name} on ${key}`, `no address of ${indexes} has a history`)
    const shown = `${used.right.slice(0, shownIndexes).join(", ")}${length > shownIndexes ? ` and ${length - shownIndexes} more` : ""}`
    return warn(
      `${name} on ${key}`,
      `${length} of ${indexes} have a history: ${shown}; the last is ${Math.max(...used.right)}`,
      "tilld skips them; unless a copy was restored here, the seed is used elsewhere too: give tilld an account's key of its own seed"
    )
  })
})
