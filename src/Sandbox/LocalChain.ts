import { Deferred, Effect, FiberId } from "effect"
import {
  type Abi,
  type Address,
  encodeDeployData,
  encodeFunctionData,
  erc20Abi,
  getContractAddress,
  type Hash,
  type Hex,
  numberToHex,
  parseAbi
} from "viem"
import { decimalsOf, Erc20 } from "../Domain/Currency.ts"
import { AnvilNotStarted, type AnvilOptions, startAnvil } from "./Anvil.ts"
import contracts from "./contracts.json" with { type: "json" }
import { ampleFees, LocalRpcError, makeRpc, type SandboxRpc } from "./Rpc.ts"

/** A test token: its contract, and the decimals of its base units. */
interface LocalToken {
  readonly address: Address
  readonly decimals: number
}

/** The tenth of Anvil's published accounts: unlocked, funded, and not derived by the daemon. The other nine pay. */
const deployer: Address = "0xa0Ee7A142d267C1f36714E4a8F75612F20a79720"

// An address follows from the deployer and the index in this list, which is its nonce: never reorder, only append.
const order = ["ProxiedToken", "USDC", "USDT", "DAI", "WBTC", "Batcher", "Reverter"] as const
const addressOf = (name: (typeof order)[number]) =>
  getContractAddress({ from: deployer, nonce: BigInt(order.indexOf(name)) })

const token = (symbol: Erc20): LocalToken => ({ address: addressOf(symbol), decimals: decimalsOf[symbol] })

/** The test tokens, at the same addresses on every chain and at every start. */
export const localTokens: Readonly<Record<Erc20, LocalToken>> = {
  USDC: token("USDC"),
  USDT: token("USDT"),
  DAI: token("DAI"),
  WBTC: token("WBTC")
}

/** On every local chain: payments in batches, payments that calldata does not show, fake transfers. See `batcherAbi`. */
export const batcherAddress = addressOf("Batcher")
export const batcherAbi = parseAbi([
  "function sendEther(address[] to, uint256[] amounts) payable",
  "function sendTokens(address[] tokens, address[] to, uint256[] amounts)",
  "function fund(address[] tokens, address[] holders, uint256 amount)",
  "function fakeTransfer(address from, address to, uint256 amount)",
  "function keep(uint256 id, address payee) payable",
  "function release(uint256 id, uint256 amount)"
])

/** On every local chain: payments that fail. Any call to it reverts but `swallow`, which succeeds and pays no one. */
export const reverterAddress = addressOf("Reverter")
export const reverterAbi = parseAbi(["function swallow(address to) payable"])

/** Multicall3 where every public chain has it, https://github.com/mds1/multicall */
export const multicall3Contract = {
  address: "0xcA11bde05977b3631167028862bE2a173976CA11" as Address,
  runtime: contracts.Multicall3.runtime as Hex
}

const creation = (name: Exclude<keyof typeof contracts, "Multicall3">, args: ReadonlyArray<unknown> = []) =>
  encodeDeployData({ abi: contracts[name].abi as Abi, bytecode: contracts[name].bytecode as Hex, args })

const describeUsdc = () =>
  encodeFunctionData({
    abi: parseAbi(["function initialize(string name, string symbol, uint8 decimals)"]),
    args: ["USD Coin", "USDC", decimalsOf.USDC]
  })

const creations: { readonly [Name in (typeof order)[number]]: () => Hex } = {
  ProxiedToken: () => creation("ProxiedToken"),
  USDC: () => creation("Proxy", [addressOf("ProxiedToken"), describeUsdc()]),
  USDT: () => creation("SilentToken", ["Tether USD", "USDT", decimalsOf.USDT]),
  DAI: () => creation("PlainToken", ["Dai Stablecoin", "DAI", decimalsOf.DAI]),
  WBTC: () => creation("PlainToken", ["Wrapped BTC", "WBTC", decimalsOf.WBTC]),
  Batcher: () => creation("Batcher"),
  Reverter: () => creation("Reverter")
}

/**
 * The deployer's transactions on a new chain, in the order of its nonces from 0: the contracts, then the minting of
 * each wanted token to `holders`. A token that is not wanted still uses up its nonce, on a transfer of nothing.
 */
const setup = (wanted: ReadonlyArray<Erc20>, holders: ReadonlyArray<Address>) => {
  const unwanted: ReadonlyArray<string> = Erc20.literals.filter((symbol) => !wanted.includes(symbol))
  const deployments = order.map((name) => (unwanted.includes(name) ? { to: deployer } : { data: creations[name]() }))
  const tokens = [...new Set(wanted)].map((symbol) => localTokens[symbol].address)
  const data = encodeFunctionData({ abi: batcherAbi, functionName: "fund", args: [tokens, holders, 2n ** 128n] })
  return [...deployments, { to: batcherAddress, data }]
}

/** A raw call: `data` is already encoded, `value` is in wei, `gas` is 10 million unless given. */
export interface LocalCall {
  readonly to: Address
  readonly data?: Hex
  readonly value?: bigint
  readonly gas?: bigint
}

export interface LocalChainOptions extends AnvilOptions {
  /** The test tokens that this chain has. */
  readonly tokens: ReadonlyArray<Erc20>
}

/** A running local chain. Changes run one at a time, in the order of the calls. */
export type LocalChain = Effect.Effect.Success<ReturnType<typeof startLocalChain>>

// Mining more at once could outlast a call's deadline.
const minedAtOnce = 250

/** Deploys Multicall3 and the contracts in one block, and gives the accounts that pay. */
const prepare = Effect.fn("LocalChain.prepare")(function* (rpc: SandboxRpc, options: LocalChainOptions) {
  // Otherwise Anvil writes a line for every call.
  yield* rpc("anvil_setLoggingEnabled", [false])
  const payers = (yield* rpc<Array<Address>>("eth_accounts")).filter((a) => a.toLowerCase() !== deployer.toLowerCase())
  yield* rpc("anvil_setCode", [multicall3Contract.address, multicall3Contract.runtime])
  const hashes = yield* Effect.forEach(
    setup(options.tokens, payers),
    (call, nonce) =>
      rpc<Hash>("eth_sendTransaction", [
        { from: deployer, nonce: numberToHex(nonce), gas: numberToHex(4_000_000), ...ampleFees, ...call }
      ]),
    { concurrency: 4 }
  )
  yield* rpc("anvil_mine", ["0x1"])
  // The last one mints on all others, so its success implies theirs.
  const receipt = yield* rpc<{ status: Hex } | null>("eth_getTransactionReceipt", [hashes.at(-1)])
  if (receipt?.status !== "0x1") {
    return yield* new AnvilNotStarted({ chain: options.chain, reason: "its test contracts could not be deployed" })
  }
  return payers
})

const tokensOf = (symbols: ReadonlyArray<Erc20>): Readonly<Partial<Record<Erc20, LocalToken>>> =>
  Object.fromEntries(symbols.map((symbol) => [symbol, localTokens[symbol]]))

/**
 * One effect at a time, in the order of arrival. Effect's semaphore wakes every waiting fiber at each release: with
 * 1,500 payments waiting that costs 20 ms a payment, where Anvil takes one.
 */
const makeTurns = () => {
  let last = Effect.void
  return <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.acquireUseRelease(
      Effect.suspend(() => {
        const before = last
        const over = Deferred.unsafeMake<void>(FiberId.none)
        last = Deferred.await(over)
        return Effect.as(before, over)
      }),
      () => effect,
      (over) => Deferred.succeed(over, undefined)
    )
}

/**
 * Starts a local chain with its test contracts; it runs until the scope closes. Several may start at once.
 * Fails with `AnvilMissing`, `PortInUse`, `AnvilNotStarted` or `LocalRpcError`.
 */
export const startLocalChain = Effect.fn("LocalChain.start")(function* (options: LocalChainOptions) {
  const anvil = yield* startAnvil(options)
  const url = `http://${anvil.host}:${anvil.port}`
  const rpc = yield* makeRpc(options.chain, url)
  const payers = yield* prepare(rpc, options)
  const tokens = tokensOf(options.tokens)

  // Anvil gives two transactions of one account that arrive together the same nonce, and refuses one of them.
  const exclusive = makeTurns()
  let payments = 0

  /** Sends a call from a funded account, also one that will fail. */
  const send = Effect.fn("LocalChain.send")(function* ({ to, data, value = 0n, gas = 10_000_000n }: LocalCall) {
    // Payers take turns, as customers do: a transaction that a reorg dropped can be included again after later payments.
    const from = payers[payments++ % payers.length]
    const call = { from, to, ...(data && { data }), value: numberToHex(value), gas: numberToHex(gas), ...ampleFees }
    return yield* rpc<Hash>("eth_sendTransaction", [call])
  }, exclusive)

  const token = (symbol: Erc20) =>
    Effect.fromNullable(tokens[symbol]).pipe(
      Effect.orElse(() => Effect.dieMessage(`the local chain ${options.chain} was started without ${symbol}`))
    )

  /** A transfer of coin in wei, or of base units of a token. */
  type Payment = { readonly to: Address; readonly amount: bigint }

  return {
    /** The chain's process: SIGSTOP makes it hang, SIGKILL makes it disappear. */
    pid: anvil.pid,
    ...{ url, port: anvil.port, chainId: options.chainId, tokens, rpc, send },
    /** Waits until the chain's process has ended, and says how. */
    ended: anvil.ended,
    /** Pays from a funded account. Without a block time the transaction waits in the pool for `mine`. */
    payNative: Effect.fn("LocalChain.payNative")(({ to, amount }: Payment) =>
      send({ to, value: amount, gas: 100_000n })
    ),
    /** The same of a token. Dies of one that this chain lacks. */
    payToken: Effect.fn("LocalChain.payToken")(function* ({
      symbol,
      to,
      amount
    }: Payment & { readonly symbol: Erc20 }) {
      const { address } = yield* token(symbol)
      const data = encodeFunctionData({ abi: erc20Abi, functionName: "transfer", args: [to, amount] })
      return yield* send({ to: address, data, gas: 200_000n })
    }),
    /**
     * Mines `count` blocks, default 1. Their timestamps are `secondsApart`, which puts the chain's clock ahead for good;
     * without it they share one.
     */
    mine: Effect.fn("LocalChain.mine")(function* (count = 1, secondsApart = 0) {
      for (let left = count; left > 0; left -= minedAtOnce) {
        yield* rpc("anvil_mine", [numberToHex(Math.min(left, minedAtOnce)), numberToHex(secondsApart)], "30 seconds")
      }
    }, exclusive),
    /** Its `timestamp` is in Unix seconds. */
    head: rpc<{ number: Hex; hash: Hash; timestamp: Hex }>("eth_getBlockByNumber", ["latest", false]).pipe(
      Effect.map(({ number, hash, timestamp }) => ({ number: Number(number), hash, timestamp: Number(timestamp) })),
      Effect.withSpan("LocalChain.head")
    ),
    /** Replaces the last `depth` blocks by as many empty ones. Their transactions are gone, from the pool too. */
    reorg: Effect.fn("LocalChain.reorg")((depth: number) => Effect.asVoid(rpc("anvil_reorg", [depth, []])), exclusive),
    /** Stores the chain's state, for one `revert`. */
    snapshot: exclusive(rpc<Hex>("evm_snapshot")),
    /** Goes back to a snapshot, to a lower head. */
    revert: Effect.fn("LocalChain.revert")((snapshot: Hex) => Effect.asVoid(rpc("evm_revert", [snapshot])), exclusive),
    /** A signed transaction: read before a reorg, `sendRaw` includes it again after the reorg. */
    rawTransaction: Effect.fn("LocalChain.rawTransaction")(function* (hash: Hash) {
      const method = "eth_getRawTransactionByHash"
      const raw = yield* rpc<Hex | null>(method, [hash])
      if (raw !== null) return raw
      return yield* new LocalRpcError({
        chain: options.chain,
        method,
        reason: "Refused",
        detail: `no such transaction: ${hash}`
      })
    }),
    sendRaw: Effect.fn("LocalChain.sendRaw")((raw: Hex) => rpc<Hash>("eth_sendRawTransaction", [raw]), exclusive),
    /** Wei at the head. */
    balance: Effect.fn("LocalChain.balance")((account: Address) =>
      Effect.map(rpc<Hex>("eth_getBalance", [account, "latest"]), BigInt)
    ),
    /** Base units at the head. Dies of a token that this chain lacks. */
    tokenBalance: Effect.fn("LocalChain.tokenBalance")(function* (symbol: Erc20, account: Address) {
      const { address } = yield* token(symbol)
      const data = encodeFunctionData({ abi: erc20Abi, functionName: "balanceOf", args: [account] })
      return BigInt(yield* rpc<Hex>("eth_call", [{ to: address, data }, "latest"]))
    })
  }
})
