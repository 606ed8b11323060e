import assert from "node:assert/strict"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { mnemonicToSeedSync } from "@scure/bip39"
import { BigDecimal, Duration, Effect, Fiber, Logger, LogLevel, Option, Redacted, Schedule } from "effect"
import {
  type Abi,
  type Address,
  encodeDeployData,
  encodeFunctionData,
  erc20Abi,
  type Hex,
  numberToHex,
  parseAbi
} from "viem"
import { generatePrivateKey, HDKey, privateKeyToAddress } from "viem/accounts"
import { accessTo } from "../../src/Chains/providers/chainAccess.ts"
import { Rpc } from "../../src/Chains/rpc/Rpc.ts"
import { type BroadcastRequest, broadcast, type PayingMove } from "../../src/Collect/broadcast.ts"
import type { PlannedRefund, PlanRequest } from "../../src/Collect/candidates.ts"
import { makePlan } from "../../src/Collect/makePlan.ts"
import type { CollectRefused, Plan } from "../../src/Collect/Plan.ts"
import type { SweepResult } from "../../src/Collect/reconcile.ts"
import type { Signed } from "../../src/Collect/Signed.ts"
import { signPlan } from "../../src/Collect/sign.ts"
import type { HeldBack } from "../../src/Collect/standing.ts"
import type { ChainName, Mode } from "../../src/Domain/Chain.ts"
import type { Erc20 } from "../../src/Domain/Currency.ts"
import { RefundId } from "../../src/Domain/Ids.ts"
import type { ReceivedPayment } from "../../src/Payments/addresses/receivedPayment.ts"
import contracts from "../../src/Sandbox/contracts.json" with { type: "json" }
import { type LocalChain, startLocalChain } from "../../src/Sandbox/LocalChain.ts"
import { hdWallet, sponsorAddress } from "../../src/Settings/hdWallet.ts"
import type { ChainSettings } from "../../src/Settings.ts"
import { testChain, testSettings } from "../lib/settings.ts"
import { temporaryFolder } from "../lib/store.ts"
import { type Edit, inFrontOf } from "./inFront.ts"
import { refusalBefore } from "./refusal.ts"

export const usd = 10n ** 6n
export const ether = 10n ** 18n

const phrase = "legal winner thank year wave sausage worth useful legal winner thank yellow"
/** The n of m/44'/60'/n'. */
const account = 5

const seed = () => mnemonicToSeedSync(phrase)
const xpub = HDKey.fromMasterSeed(seed()).derive(`m/44'/60'/${account}'`).publicExtendedKey
const wallet = hdWallet(xpub)
const sponsor = sponsorAddress(xpub) as Address

export const someone = (): Address => privateKeyToAddress(generatePrivateKey())

const prices: Readonly<Record<string, string>> = { ETH: "2500", USDC: "1", USDT: "1", DAI: "1", WBTC: "60000" }

const noLimits = { allow: [], feeCeiling: 10n ** 15n }

const tokenAbi = parseAbi(["function blacklist(address account)", "function mint(address to, uint256 amount)"])

/** Deploys a token of the sandbox's contracts in the place of a configured one. */
export const deployToken = Effect.fnUntraced(function* (
  local: LocalChain,
  name: "FeeToken" | "SilentToken" | "PlainToken",
  symbol: string,
  decimals: number
) {
  const data = encodeDeployData({
    abi: contracts[name].abi as Abi,
    bytecode: contracts[name].bytecode as Hex,
    args: [symbol, symbol, decimals]
  })
  const [from] = yield* local.rpc<ReadonlyArray<Address>>("eth_accounts")
  const hash = yield* local.rpc<Hex>("eth_sendTransaction", [{ from, data, gas: "0x3d0900" }])
  yield* local.mine()
  const receipt = yield* local.rpc<{ readonly contractAddress: Address }>("eth_getTransactionReceipt", [hash])
  return receipt.contractAddress
})

export interface CollectingOptions {
  readonly chain?: ChainName
  readonly mode?: Mode
  readonly confirmations?: number
}

/** A local chain, a wallet of its own, and the three steps on them. The chain mines when it is told to, or by `mining`. */
export const collecting = Effect.fnUntraced(function* ({
  chain = "ethereum",
  mode = "test",
  confirmations = 2
}: CollectingOptions = {}) {
  const local = yield* startLocalChain({ chain, chainId: 31_337, tokens: ["USDC", "USDT", "DAI"] })
  const folder = yield* temporaryFolder
  const tokens = (["USDC", "USDT", "DAI"] as const).map((symbol) => ({
    symbol,
    address: (local.tokens[symbol]?.address ?? "").toLowerCase(),
    decimals: local.tokens[symbol]?.decimals ?? 0
  }))
  const usual = testChain({
    ...{ chain, mode, chainId: local.chainId, confirmations, tokens },
    rpcUrls: [Redacted.make(local.url)],
    pollInterval: Duration.millis(50)
  })
  let current = usual
  const settings = () =>
    testSettings(join(folder, "tilld.db"), {
      chains: [current],
      wallets: { live: undefined, test: undefined, [mode]: Redacted.make(xpub) }
    })
  /** Configures another contract for a token. */
  const replaceToken = (symbol: Erc20, address: string) => {
    const replaced = current.tokens.map((one) =>
      one.symbol === symbol ? { ...one, address: address.toLowerCase() } : one
    )
    current = { ...current, tokens: replaced }
  }
  /** Changes the chain's configuration. */
  const change = (over: Partial<ChainSettings>) => {
    current = { ...current, ...over }
  }
  const said: Array<string> = []
  const onProgress = (text: string) => Effect.sync(() => void said.push(text))

  /** Pays so many of a token, or of coin, to each of the wallet's addresses from `first` on. */
  const pay = Effect.fnUntraced(function* (currency: Erc20 | "ETH", count: number, amount: bigint, first = 0) {
    for (let index = first; index < first + count; index++) {
      const to = wallet.address(index) as Address
      yield* currency === "ETH" ? local.payNative({ to, amount }) : local.payToken({ symbol: currency, to, amount })
      if (index % 20 === 19) yield* local.mine()
    }
    yield* local.mine()
  })

  const received = (
    count: number,
    of: (index: number) => Partial<ReceivedPayment> = () => ({})
  ): ReadonlyArray<ReceivedPayment> =>
    Array.from({ length: count }, (_, index) => ({
      ...{ payment: `pay_${index}`, account: "default", address: wallet.address(index), walletAccount: account, index },
      ...{ isOpen: false, held: [], ...of(index) }
    }))

  /**
   * Has the chain asked through these providers from now on, in this order: by their URLs, or by what each does with the chain's
   * answers, where undefined is nothing.
   */
  const askThrough = (...all: ReadonlyArray<string | Edit | undefined>) =>
    Effect.forEach(all, (one = local.url) =>
      typeof one === "string" ? Effect.succeed(one) : Effect.map(inFrontOf(local.url, one), ({ url }) => url)
    ).pipe(Effect.map((urls) => change({ rpcUrls: urls.map((url) => Redacted.make(url)) })))

  const destination = someone()
  const request = (over: Partial<PlanRequest> = {}): PlanRequest => ({
    ...{ xpub, received: [], destination, currencies: undefined, maxFee: undefined, feeSteps: 3 },
    ...{ refunds: [], onProgress },
    minUsd: BigDecimal.make(0n, 0),
    price: (symbol) => Option.getOrUndefined(BigDecimal.fromString(prices[symbol] ?? "")),
    ...over
  })
  const network = { chain, mode }
  const plan = (over: Partial<PlanRequest>) =>
    Effect.flatMap(accessTo(settings(), network), (access) => makePlan(access, request(over))).pipe(
      Effect.provide(Rpc.layer)
    )
  const sign = (made: Plan) => signPlan(made, seed(), noLimits)
  const planned = (over: Partial<PlanRequest>) =>
    Effect.flatMap(plan(over), ({ plan }) => Effect.map(sign(plan), (signed) => ({ plan, signed })))

  const journalPath = join(folder, "signed.json.journal")
  const send = (
    signed: Signed,
    over: Partial<BroadcastRequest> = {},
    check: (
      unpaid: ReadonlyArray<PlannedRefund>
    ) => Effect.Effect<{ notOwed: ReadonlyMap<string, string>; held: HeldBack }, CollectRefused> = () =>
      Effect.succeed({ notOwed: new Map(), held: new Map() }),
    begin: (refunds: ReadonlyArray<PayingMove>, wasSent: boolean) => Effect.Effect<void, CollectRefused> = () =>
      Effect.void
  ) =>
    Effect.flatMap(accessTo(settings(), network), (access) =>
      broadcast(access, { signed, xpub, journalPath, onProgress, ...over }, check, begin)
    ).pipe(Effect.provide(Rpc.layer), Logger.withMinimumLogLevel(LogLevel.Warning))

  /** What the receiver of everything has of a currency. */
  const arrived = (currency: Erc20 | "ETH") =>
    currency === "ETH" ? local.balance(destination) : local.tokenBalance(currency, destination)

  /** What a broadcast ends with, which has moved everything: it adds up to the unit, and the receiver has it. */
  const ends = <E, R>(sending: Effect.Effect<{ readonly result: SweepResult }, E, R>) =>
    Effect.gen(function* () {
      const { result } = yield* sending
      assert.deepEqual(result.differences, [])
      assert.ok(holdsExactly(result))
      for (const { currency } of result.totals) {
        const own = result.transfers.filter((one) => one.currency === currency && one.to === destination)
        const sum = own.reduce((all, { amount }) => all + BigInt(amount), 0n)
        assert.equal(yield* arrived(currency as Erc20 | "ETH"), sum, currency)
      }
      return result
    })

  /** Sends to such an end. */
  const sent = (...args: Parameters<typeof send>) => ends(send(...args))

  /** Sends until it has said something. */
  const sendUntil = (signed: Signed, what: string, over: Partial<BroadcastRequest> = {}) =>
    Effect.tap(Effect.fork(send(signed, over)), (sending) =>
      untilTrue(sending, () => said.some((text) => text.includes(what)))
    )

  /** The same, and ends it then. */
  const cutOff = (signed: Signed, what: string) => Effect.flatMap(sendUntil(signed, what), Fiber.interrupt)

  /** The lines of the journal; of one event, if that is given. */
  const noted = (event = ""): ReadonlyArray<string> =>
    existsSync(journalPath)
      ? readFileSync(journalPath, "utf8")
          .split("\n")
          .filter((line) => line.startsWith(`{"event":"${event}`))
      : []

  /** How many transactions an address has sent. */
  const sentBy = (address: string) => Effect.map(local.rpc<Hex>("eth_getTransactionCount", [address, "latest"]), Number)

  /** Sends from an address without its key, as another wallet of the same seed would. It waits for a block. */
  const sendFrom = (from: string, call: { readonly to: string; readonly data?: Hex }) =>
    Effect.gen(function* () {
      yield* local.rpc("anvil_impersonateAccount", [from])
      if (from !== sponsor) yield* local.rpc("anvil_setBalance", [from, numberToHex(ether)])
      yield* local.rpc("eth_sendTransaction", [{ from, ...call }])
    })

  /** Takes USDC from an address so, and mines that. */
  const takeUsdc = (index: number, units: bigint) => {
    const data = encodeFunctionData({ abi: erc20Abi, functionName: "transfer", args: [someone(), units] })
    const call = { to: local.tokens.USDC?.address ?? "", data }
    return Effect.zipRight(sendFrom(wallet.address(index), call), local.mine())
  }

  /** Why a broadcast is refused: before it sends anything. */
  const refused = (signed: Signed, over: Partial<BroadcastRequest> = {}) =>
    refusalBefore((onProgress) => send(signed, { ...over, onProgress }))

  /** Gives the sponsor a whole coin for gas. */
  const fund = Effect.zipRight(local.payNative({ to: sponsor, amount: 10n ** 18n }), local.mine())

  /** Mines a block every tenth of a second. */
  const mining = Effect.forkScoped(Effect.forever(Effect.delay(local.mine(), "100 millis")))

  return {
    local,
    wallet,
    sponsor,
    settings,
    replaceToken,
    change,
    destination,
    folder,
    journalPath,
    said,
    pay,
    fund,
    received,
    askThrough,
    plan,
    sign,
    planned,
    send,
    sent,
    ends,
    sendUntil,
    cutOff,
    noted,
    arrived,
    sentBy,
    sendFrom,
    takeUsdc,
    refused,
    mining
  }
})

export type Collecting = Effect.Effect.Success<ReturnType<typeof collecting>>

/** The id of a refund. */
export const refundId = (name: number | bigint): RefundId => RefundId.make(`ref_${`${name}`.padStart(22, "0")}`)

/** The refund of the exception of that name, of USDC at the first address unless said otherwise. */
export const refundOf = (
  { wallet }: Collecting,
  name: number | bigint,
  { index = 0, ...over }: Partial<PlannedRefund> = {}
): PlannedRefund => ({
  ...{ id: refundId(name), of: `exc_${name}`, exception: `exc_${name}`, address: wallet.address(index), index },
  ...{ currency: "USDC", amount: 5n * usd, ...over }
})

/** What so many addresses are paid each, from an index on. */
export type Paid = readonly [currency: Erc20 | "ETH", count: number, amount: bigint, first?: number]

/** The same, where addresses were paid and the sponsor has coin. */
export const funded = Effect.fnUntraced(function* (paid: ReadonlyArray<Paid>, options?: CollectingOptions) {
  const scene = yield* collecting(options)
  yield* Effect.forEach(paid, (one) => scene.pay(...one), { concurrency: 1, discard: true })
  yield* scene.fund
  return scene
})

/** The same, with a signed plan for everything. */
export const prepared = Effect.fnUntraced(function* (paid: ReadonlyArray<Paid>, options?: CollectingOptions) {
  const scene = yield* funded(paid, options)
  const count = Math.max(...paid.map(([, count, , first = 0]) => first + count))
  return { scene, ...(yield* scene.planned({ received: scene.received(count) })) }
})

/** Waits while a broadcast runs: fails with it, and where it ends before. */
export const whileSending = <A, E, B, F, R>(sending: Fiber.Fiber<A, E>, waiting: Effect.Effect<B, F, R>) =>
  Effect.raceFirst(waiting, Effect.zipRight(Fiber.join(sending), Effect.dieMessage("the broadcast ended too early")))

/** Waits while a broadcast runs until something holds. */
export const untilTrue = <A, E>(sending: Fiber.Fiber<A, E>, holds: () => boolean) =>
  whileSending(
    sending,
    Effect.repeat(Effect.sync(holds), { until: (is) => is, schedule: Schedule.spaced("20 millis") })
  )

/** Waits until a broadcast has said something. */
export const untilSaid = <A, E>({ said }: Collecting, sending: Fiber.Fiber<A, E>, what: string) =>
  untilTrue(sending, () => said.some((text) => text.includes(what)))

/** The sum of each currency holds to the unit. */
export const holdsExactly = ({ totals }: SweepResult): boolean =>
  totals.every(
    ({ before, gas, received, stayed }) => BigInt(before) === BigInt(received) + BigInt(gas) + BigInt(stayed)
  )

/** Changes a token's state by a call of the sandbox's own. */
export const callToken = (
  local: LocalChain,
  to: Address,
  functionName: "blacklist" | "mint",
  args: ReadonlyArray<unknown>
) =>
  Effect.zipRight(
    local.send({ to, data: encodeFunctionData({ abi: tokenAbi, functionName, args } as never) }),
    local.mine()
  )
