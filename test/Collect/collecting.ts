import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { mnemonicToSeedSync } from "@scure/bip39"
import { BigDecimal, Duration, Effect, Fiber, Logger, LogLevel, Option, Redacted, Schedule } from "effect"
import { type Abi, type Address, encodeDeployData, encodeFunctionData, type Hex, parseAbi } from "viem"
import { generatePrivateKey, HDKey, privateKeyToAddress } from "viem/accounts"
import { accessTo } from "../../src/Chains/providers/chainAccess.ts"
import { Rpc } from "../../src/Chains/rpc/Rpc.ts"
import { type BroadcastRequest, broadcast } from "../../src/Collect/broadcast.ts"
import type { CollectRefused } from "../../src/Collect/CollectRefused.ts"
import type { PlannedRefund, PlanRequest } from "../../src/Collect/candidates.ts"
import { makePlan } from "../../src/Collect/makePlan.ts"
import type { Plan } from "../../src/Collect/Plan.ts"
import type { SweepResult } from "../../src/Collect/reconcile.ts"
import type { Signed } from "../../src/Collect/Signed.ts"
import { signPlan } from "../../src/Collect/sign.ts"
import type { HeldBack } from "../../src/Collect/standing.ts"
import type { ChainName, Mode } from "../../src/Domain/Chain.ts"
import type { Erc20 } from "../../src/Domain/Currency.ts"
import type { ReceivedPayment } from "../../src/Payments/addresses/receivedPayment.ts"
import contracts from "../../src/Sandbox/contracts.json" with { type: "json" }
import { type LocalChain, startLocalChain } from "../../src/Sandbox/LocalChain.ts"
import { hdWallet, sponsorAddress } from "../../src/Settings/hdWallet.ts"
import type { ChainSettings } from "../../src/Settings.ts"
import { testChain, testSettings } from "../lib/settings.ts"
import { refusalBefore } from "./refusal.ts"

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
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "tilld-collect-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
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

  const journalPath = join(folder, "signed.json.journal")
  const send = (
    signed: Signed,
    over: Partial<BroadcastRequest> = {},
    check: (
      unpaid: ReadonlyArray<PlannedRefund>
    ) => Effect.Effect<{ notOwed: ReadonlyMap<string, string>; held: HeldBack }, CollectRefused> = () =>
      Effect.succeed({ notOwed: new Map(), held: new Map() })
  ) =>
    Effect.flatMap(accessTo(settings(), network), (access) =>
      broadcast(access, { signed, xpub, journalPath, onProgress, ...over }, check)
    ).pipe(Effect.provide(Rpc.layer), Logger.withMinimumLogLevel(LogLevel.Warning))

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
    plan,
    sign,
    send,
    refused,
    mining
  }
})

export type Collecting = Effect.Effect.Success<ReturnType<typeof collecting>>

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
