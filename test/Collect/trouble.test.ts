import {
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Option, Redacted, Schedule } from "effect"
import { type Address, encodeFunctionData, type Hex, numberToHex, toFunctionSelector } from "viem"
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts"
import { authorizedCall, typedData } from "../../src/Collect/authorization.ts"
import { checksumOf, type Signed, signatureOf } from "../../src/Collect/Signed.ts"
import { authorizationsOf } from "../../src/Collect/transactions.ts"
import type { Erc20 } from "../../src/Domain/Currency.ts"
import { startFaultProxy } from "../lib/faultProxy.ts"
import {
  type Collecting,
  callToken,
  collecting,
  deployToken,
  holdsExactly,
  someone,
  untilSaid,
  untilTrue,
  whileSending
} from "./collecting.ts"
import { type Asked, type Edit, inFrontOf } from "./inFront.ts"
import { type Lie, startLyingProvider } from "./lyingProvider.ts"
import { refusal } from "./refusal.ts"

const usd = 10n ** 6n
const ether = 10n ** 18n

/** Three addresses with USDC and two with USDT, and a sponsor with coin. */
const prepared = Effect.gen(function* () {
  const scene = yield* collecting()
  yield* scene.pay("USDC", 3, 20n * usd)
  yield* scene.pay("USDT", 2, 30n * usd, 3)
  yield* scene.local.payNative({ to: scene.sponsor, amount: ether })
  yield* scene.local.mine()
  const { plan } = yield* scene.plan({ received: scene.received(5) })
  const signed = yield* scene.sign(plan)
  return { scene, plan, signed }
})

const everything = (scene: Collecting) =>
  Effect.gen(function* () {
    expect(yield* scene.local.tokenBalance("USDC", scene.destination)).toBe(60n * usd)
    expect(yield* scene.local.tokenBalance("USDT", scene.destination)).toBe(60n * usd)
  })

const with64 = (text: string): string => `${text.slice(0, -3)}${text.at(-3) === "1" ? "2" : "1"}${text.slice(-2)}`

it.scopedLive("refuses a file in which a byte was changed, also where its checksum was made anew", () =>
  Effect.gen(function* () {
    const { scene, signed } = yield* prepared
    const [first, ...rest] = signed.transactions
    const changedTransaction: Signed = {
      ...signed,
      transactions: [[with64(first?.[0] ?? ""), ...(first?.slice(1) ?? [])], ...rest] as Signed["transactions"]
    }
    expect(yield* scene.refused(changedTransaction)).toContain("Something in the signed file")
    const sealed = { ...changedTransaction, checksum: checksumOf(changedTransaction) }
    expect(yield* scene.refused(sealed)).toContain("Transaction 1, of")
    // One more than the fees have steps: whatever it is, it is none of the plan's.
    const transactions = signed.transactions.map((each) => [...each, each[0]] as const)
    const longer: Signed = { ...signed, transactions, checksum: checksumOf({ ...signed, transactions }) }
    expect(yield* scene.refused(longer)).toContain("Transaction 1, of")
    const authorizations = signed.authorizations.map((raw, i) => (i === 0 ? with64(raw) : raw))
    const changedAuthorization = { ...signed, authorizations }
    const sealedToo = { ...changedAuthorization, checksum: checksumOf(changedAuthorization) }
    expect(yield* scene.refused(sealedToo)).toContain("The authorization of")
    const elsewhere = { ...signed, plan: { ...signed.plan, destination: someone() } }
    expect(yield* scene.refused(elsewhere)).toContain("The digest")
    expect(yield* scene.local.tokenBalance("USDC", scene.destination)).toBe(0n)
  })
)

it.scopedLive("refuses a plan of another chain id", () =>
  Effect.gen(function* () {
    const { scene, signed } = yield* prepared
    scene.change({ chainId: 31_338 })
    expect(yield* scene.refused(signed)).toContain("The plan is for chain 31337, and ethereum.test is chain 31338")
  })
)

it.scopedLive("refuses a token that is not the configured one, before anything is sent", () =>
  Effect.gen(function* () {
    const { scene, signed } = yield* prepared
    const proxy = yield* startFaultProxy(scene.local.url)
    scene.change({ rpcUrls: [Redacted.make(proxy.url)] })
    yield* scene.mining
    const [{ tokens } = expect.fail()] = scene.settings().chains
    const of = Object.fromEntries(tokens.map(({ address, symbol }) => [symbol, address]))
    const other = yield* deployToken(scene.local, "PlainToken", "USDC", 6)
    for (const i of [0, 1, 2]) yield* callToken(scene.local, other, "mint", [scene.wallet.address(i), 20n * usd])
    const changes: ReadonlyArray<readonly [Erc20, Partial<Record<Erc20, object>>]> = [
      ["USDC", { USDC: { address: other.toLowerCase() } }],
      ["USDC", { USDC: { decimals: 18 } }],
      ["USDT", { USDT: { decimals: 5 } }],
      ["USDC", { USDC: { address: of.USDT }, USDT: { address: of.USDC } }]
    ]
    for (const [symbol, changed] of changes) {
      scene.change({ tokens: tokens.map((one) => ({ ...one, ...changed[one.symbol] })) })
      expect(yield* refusal(scene.send(signed))).toBe(
        `${of[symbol]} is not the ${symbol} of ethereum.test in this configuration: nothing was sent.`
      )
    }
    scene.change({ tokens: tokens.filter(({ symbol }) => symbol !== "USDT") })
    expect(yield* refusal(scene.send(signed))).toContain("is not the USDT of ethereum.test in this configuration")
    expect(proxy.count("eth_sendRawTransaction")).toBe(0)
    expect(existsSync(scene.journalPath)).toBe(false)
    scene.change({ tokens })
    expect((yield* scene.send(signed)).result.differences).toEqual([])
    expect(proxy.count("eth_sendRawTransaction")).toBeGreaterThan(0)
    yield* everything(scene)
  })
)

it.scopedLive("refuses where a nonce has moved, or a balance is lower", () =>
  Effect.gen(function* () {
    const { plan, scene, signed } = yield* prepared
    const source = plan.moves.find(({ way }) => way === "token")?.address as Address
    yield* scene.local.rpc("anvil_setNonce", [source, "0x1"])
    expect(yield* scene.refused(signed)).toContain(
      `The next nonce of ${source} is 1, and 0 was signed: it has sent another transaction`
    )
    yield* scene.local.rpc("anvil_setNonce", [source, "0x0"])
    // One that was planned with a nonce which the chain does not have yet would be payable later.
    yield* scene.local.rpc("anvil_setNonce", [scene.sponsor, "0x2"])
    const { plan: ahead } = yield* scene.plan({ received: scene.received(5) })
    yield* scene.local.rpc("anvil_setNonce", [scene.sponsor, "0x0"])
    const early = yield* scene.refused(yield* scene.sign(ahead))
    expect(early).toContain(`The next nonce of ${scene.sponsor} is 0, and 2 was signed`)
    const snapshot = yield* scene.local.snapshot
    const token = scene.local.tokens.USDC?.address
    const holder = scene.wallet.address(0) as Address
    yield* scene.local.rpc("anvil_impersonateAccount", [holder])
    yield* scene.local.rpc("anvil_setBalance", [holder, numberToHex(ether)])
    const abi = [
      {
        type: "function",
        name: "transfer",
        stateMutability: "nonpayable",
        outputs: [{ type: "bool" }],
        inputs: [{ type: "address" }, { type: "uint256" }]
      }
    ] as const
    const data = encodeFunctionData({ abi, functionName: "transfer", args: [someone(), 1n] })
    yield* scene.local.rpc("eth_sendTransaction", [{ from: holder, to: token, data }])
    yield* scene.local.mine()
    expect(yield* scene.refused(signed)).toContain(`${holder} lacks 0.000001 USDC of what the plan moves`)
    yield* scene.local.revert(snapshot)
    yield* scene.mining
    expect((yield* scene.send(signed)).result.differences).toEqual([])
  })
)

it.scopedLive(
  "refuses a base fee above what was signed, and a sponsor without its gas; goes on once both are mended",
  () =>
    Effect.gen(function* () {
      const { plan, scene, signed } = yield* prepared
      const { baseFeePerGas } = yield* scene.local.rpc<{ baseFeePerGas: Hex }>("eth_getBlockByNumber", [
        "latest",
        false
      ])
      yield* scene.local.rpc("anvil_setNextBlockBaseFeePerGas", [numberToHex(BigInt(baseFeePerGas) * 10n)])
      yield* scene.local.mine()
      expect(yield* scene.refused(signed)).toContain("A unit of gas costs")
      yield* scene.local.rpc("anvil_setNextBlockBaseFeePerGas", [baseFeePerGas])
      yield* scene.local.mine()
      const lacking = BigInt(plan.sponsor.needsWei) - 1n
      yield* scene.local.rpc("anvil_setBalance", [scene.sponsor, numberToHex(lacking)])
      expect(yield* scene.refused(signed)).toContain(`The sponsor ${scene.sponsor} lacks 0.000000000000000001 ETH`)
      // Nothing was begun.
      expect(existsSync(scene.journalPath)).toBe(false)
      yield* scene.local.rpc("anvil_setBalance", [scene.sponsor, numberToHex(lacking + 1n)])
      yield* scene.mining
      const { result } = yield* scene.send(signed)
      expect(result.differences).toEqual([])
      expect(holdsExactly(result)).toBe(true)
      yield* everything(scene)
    })
)

it.scopedLive("counts an authorization that somebody else has carried out as done", () =>
  Effect.gen(function* () {
    const { scene, signed } = yield* prepared
    yield* carryOut(scene, signed, 0)
    const sending = yield* Effect.fork(scene.send(signed, { patience: Duration.millis(500) }))
    // Between its beginning and its batch, which is not mined yet.
    yield* whileSending(
      sending,
      Effect.repeat(
        Effect.map(scene.local.rpc<{ pending: Hex }>("txpool_status"), ({ pending }) => BigInt(pending) > 0n),
        { until: (is) => is, schedule: Schedule.spaced("10 millis") }
      )
    )
    yield* scene.local.rpc("evm_setAutomine", [false])
    yield* scene.local.rpc("anvil_dropAllTransactions")
    yield* carryOut(scene, signed, 1)
    yield* scene.mining
    const { result } = yield* Fiber.join(sending)
    expect(result.differences).toEqual([])
    expect(holdsExactly(result)).toBe(true)
    expect(new Set(result.transfers.slice(0, 3).map(({ hash }) => hash)).size).toBe(3)
    yield* everything(scene)
  })
)

/** The exceptions of an address that go back in one plan, by their amounts in USDC. */
const refundsOf = ({ wallet }: Collecting, amounts: ReadonlyArray<bigint>) =>
  amounts.map((amount) => ({
    ...{ id: `exc_${amount}`, address: wallet.address(0), index: 0, currency: "USDC", amount: amount * usd }
  }))

const carryOut = ({ local }: Collecting, { authorizations, plan }: Signed, place: number) => {
  const one = authorizationsOf(plan)[place]
  const signature = signatureOf(authorizations[place] ?? "")
  return Effect.zipRight(
    local.send({
      to: (one?.token.contract ?? "0x") as Address,
      data: one === undefined ? "0x" : authorizedCall(one.message, signature)
    }),
    local.mine()
  )
}

const refunding = (amounts: ReadonlyArray<bigint>) =>
  Effect.gen(function* () {
    const scene = yield* collecting()
    yield* scene.pay("USDC", 1, 20n * usd)
    yield* scene.fund
    const refunds = refundsOf(scene, amounts)
    const { plan } = yield* scene.plan({ refunds })
    return { scene, refunds, plan, signed: yield* scene.sign(plan) }
  })

it.scopedLive("counts each of two refunds of an address for itself, where somebody else has carried one out", () =>
  Effect.gen(function* () {
    const { scene, signed } = yield* refunding([5n, 7n])
    yield* carryOut(scene, signed, 0)
    yield* scene.mining
    const { result } = yield* scene.send(signed)
    expect(result.differences).toEqual([])
    expect(result.transfers.map(({ amount, refund }) => [refund, amount])).toEqual([
      ["exc_5", `${5n * usd}`],
      ["exc_7", `${7n * usd}`]
    ])
    expect(new Set(result.transfers.map(({ hash }) => hash)).size).toBe(2)
    expect(yield* scene.local.tokenBalance("USDC", scene.destination)).toBe(12n * usd)
  })
)

it.scopedLive("counts a refund that somebody else has carried out, whatever others use its nonce for", () =>
  Effect.gen(function* () {
    const { plan, scene, signed } = yield* refunding([5n])
    yield* carryOut(scene, signed, 0)
    // A nonce is its holder's own: a stranger's transfer of nothing can have it too.
    const stranger = privateKeyToAccount(generatePrivateKey())
    const [one = expect.fail()] = authorizationsOf(plan)
    const message = { ...one.message, from: stranger.address, value: 0n }
    const signature = yield* Effect.promise(() => stranger.signTypedData(typedData(plan, one.token, message)))
    const data = authorizedCall(message, signatureOf(signature))
    yield* scene.local.send({ to: one.token.contract as Address, data })
    yield* scene.local.mine()
    yield* scene.mining
    const { result } = yield* scene.send(signed)
    expect(result.differences).toEqual([])
    expect(result.transfers.map(({ amount, refund }) => [refund, amount])).toEqual([["exc_5", `${5n * usd}`]])
  })
)

it.scopedLive("pays a refund once, of however many plans that have it", () =>
  Effect.gen(function* () {
    const { plan, refunds, scene, signed } = yield* refunding([5n])
    const { plan: next } = yield* scene.plan({ refunds, feeSteps: 2 })
    expect(next.digest).not.toBe(plan.digest)
    const [again] = authorizationsOf(next)
    expect(again?.message.nonce).toBe(authorizationsOf(plan)[0]?.message.nonce)
    yield* carryOut(scene, yield* scene.sign(next), 0)
    yield* scene.mining
    const { result } = yield* scene.send(signed)
    expect(result.differences).toEqual([])
    expect(yield* scene.local.tokenBalance("USDC", scene.destination)).toBe(5n * usd)
    expect(yield* refusal(scene.plan({ refunds }))).toContain("exc_5 was sent back already")
  })
)

it.scopedLive("sends again what a reorg of three blocks took out", () =>
  Effect.gen(function* () {
    const { scene, signed } = yield* prepared
    scene.change({ confirmations: 6 })
    const sending = yield* Effect.fork(scene.send(signed, { patience: Duration.minutes(10) }))
    const until = (said: string) =>
      whileSending(
        sending,
        Effect.repeat(
          Effect.zipRight(
            scene.local.mine(),
            Effect.sync(() => scene.said.some((text) => text.includes(said)))
          ),
          { until: (is) => is, schedule: Schedule.spaced("100 millis") }
        )
      )
    yield* until("3 in a block")
    yield* scene.local.reorg(3)
    yield* until("a reorg took")
    yield* scene.mining
    const { result } = yield* Fiber.join(sending)
    expect(result.differences).toEqual([])
    expect(holdsExactly(result)).toBe(true)
    yield* everything(scene)
  })
)

it.scopedLive("replaces what is stuck by the higher fees that were signed with it", () =>
  Effect.gen(function* () {
    const { plan, scene, signed } = yield* prepared
    // Between the first step and the last one: what is sent at the first is not taken.
    const base = (BigInt(plan.fees[1]?.most ?? 0) + BigInt(plan.fees[2]?.most ?? 0)) / 2n
    const sending = yield* Effect.fork(scene.send(signed, { patience: Duration.millis(200) }))
    yield* untilSaid(scene, sending, "of 5 transactions sent")
    const dear = scene.local
      .rpc("anvil_setNextBlockBaseFeePerGas", [numberToHex(base)])
      .pipe(Effect.zipRight(scene.local.mine()), Effect.delay("100 millis"))
    yield* Effect.forkScoped(Effect.forever(dear))
    const { result } = yield* Fiber.join(sending)
    expect(result.differences).toEqual([])
    expect(holdsExactly(result)).toBe(true)
    const prices = yield* Effect.forEach(
      [...new Set(result.transfers.map(({ hash }) => hash))],
      (hash) => scene.local.rpc<{ maxFeePerGas: Hex }>("eth_getTransactionByHash", [hash]),
      { concurrency: 1 }
    )
    expect(prices.map(({ maxFeePerGas }) => `${BigInt(maxFeePerGas)}`)).toContain(plan.fees[2]?.most)
    yield* everything(scene)
  })
)

it.scopedLive("gives its account again once it has finished, and is not another file's journal", () =>
  Effect.gen(function* () {
    const { plan, scene, signed } = yield* prepared
    yield* scene.mining
    const { result, wasFinished } = yield* scene.send(signed)
    expect(wasFinished).toBe(false)
    // Money that comes later is none of it.
    yield* scene.pay("USDC", 1, 5n * usd)
    expect(yield* scene.send(signed)).toEqual({ result, wasFinished: true })
    const { plan: next } = yield* scene.plan({ received: scene.received(5) })
    expect(next.digest).not.toBe(plan.digest)
    expect(yield* scene.refused(yield* scene.sign(next))).toContain("is the journal of another signed file")
  })
)

it.scopedLive("waits for the second provider before anything counts as confirmed", () =>
  Effect.gen(function* () {
    const { scene, signed } = yield* prepared
    const proxy = yield* startFaultProxy(scene.local.url)
    scene.change({ rpcUrls: [scene.local.url, proxy.url].map((url) => Redacted.make(url)) })
    const sending = yield* Effect.fork(scene.send(signed))
    yield* untilSaid(scene, sending, "of 5 transactions sent")
    yield* proxy.set("drop")
    yield* scene.mining
    yield* untilSaid(scene, sending, "5 of 5 transactions sent, 5 in a block, 0 confirmed")
    const { number } = yield* scene.local.head
    // Long after the depth that the chain asks for.
    yield* Effect.repeat(scene.local.head, {
      until: (head) => head.number > number + 10,
      schedule: Schedule.spaced("50 millis")
    })
    expect(scene.said.filter((text) => /[1-9] confirmed$/.test(text))).toEqual([])
    expect(yield* Fiber.poll(sending)).toEqual(Option.none())
    yield* proxy.set()
    const { result } = yield* Fiber.join(sending)
    expect(result.differences).toEqual([])
    yield* everything(scene)
  })
)

it.scopedLive("keeps its journal to itself: no link, no other file, no second broadcast", () =>
  Effect.gen(function* () {
    const { scene, signed } = yield* prepared
    const other = join(scene.folder, "other")
    writeFileSync(other, "not a journal, and without an end of line")
    symlinkSync(other, scene.journalPath)
    expect(yield* scene.refused(signed)).toContain("cannot be used")
    expect(yield* scene.refused(signed, { journalPath: other })).toContain("is not a journal")
    expect(readFileSync(other, "utf8")).toBe("not a journal, and without an end of line")
    mkdirSync(join(scene.folder, "folder"))
    expect(yield* scene.refused(signed, { journalPath: join(scene.folder, "folder") })).toContain("cannot be used")
    unlinkSync(scene.journalPath)
    // Under another name it is a file that something else uses.
    const used = join(scene.folder, "used")
    writeFileSync(used, "", { mode: 0o644 })
    linkSync(used, scene.journalPath)
    expect(yield* scene.refused(signed)).toContain("it has a second name: put a copy in its place")
    expect([readFileSync(used, "utf8"), statSync(used).mode & 0o777]).toEqual(["", 0o644])
    unlinkSync(scene.journalPath)
    writeFileSync(scene.journalPath, '{"event":"begun","at', { mode: 0o644 })
    const sending = yield* Effect.fork(scene.send(signed))
    yield* untilSaid(scene, sending, "of 5 transactions sent")
    expect(statSync(scene.journalPath).mode & 0o777).toBe(0o600)
    expect(yield* scene.refused(signed)).toContain("Another process works on")
    yield* scene.mining
    expect((yield* Fiber.join(sending)).result.differences).toEqual([])
    // The line that was cut short is gone from it.
    expect(yield* scene.send(signed)).toMatchObject({ wasFinished: true })
  })
)

/** As `prepared`, with a second provider that can lie. */
const withLiar = (order: (honest: string, liar: string) => ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const { scene, signed } = yield* prepared
    const liar = yield* startLyingProvider(scene.local.url)
    scene.change({ rpcUrls: order(scene.local.url, liar.url).map((url) => Redacted.make(url)) })
    return { scene, signed, liar }
  })

it.scopedLive("gives nothing up because one provider says that its nonce is used, and hides its receipts", () =>
  Effect.gen(function* () {
    const { liar, scene, signed } = yield* withLiar((honest, other) => [other, honest])
    let asked = 0
    const hidden: Lie = ({ method, params: [, block] }, result) => {
      if (method === "eth_getTransactionCount" && block !== "latest") asked += 1
      return method === "eth_getTransactionReceipt" ? null : method === "eth_getTransactionCount" ? "0x9" : result
    }
    const sending = yield* Effect.fork(scene.send(signed))
    yield* untilSaid(scene, sending, "of 5 transactions sent")
    yield* liar.tell(hidden)
    // It has looked which of the three are replaced, and looks again.
    yield* untilTrue(sending, () => asked > 3)
    expect(scene.said.filter((text) => text.includes("given up"))).toEqual([])
    yield* scene.mining
    yield* untilSaid(scene, sending, "no two providers say the same")
    yield* liar.tell()
    const { result } = yield* Fiber.join(sending)
    expect(result.differences).toEqual([])
    expect(scene.said.filter((text) => text.includes("given up"))).toEqual([])
    yield* everything(scene)
  })
)

it.scopedLive("gives up what every provider says another transaction has replaced", () =>
  Effect.gen(function* () {
    const { liar, scene, signed } = yield* withLiar((honest, other) => [honest, other])
    yield* liar.tell()
    const sending = yield* Effect.fork(scene.send(signed, { patience: Duration.minutes(10) }))
    yield* untilSaid(scene, sending, "of 5 transactions sent")
    yield* scene.local.rpc("anvil_dropAllTransactions")
    yield* scene.local.rpc("anvil_setNonce", [scene.sponsor, "0x9"])
    yield* scene.mining
    const { result } = yield* Fiber.join(sending)
    expect(result.differences).toHaveLength(5)
    expect(result.transfers).toEqual([])
  })
)

it.scopedLive("shows as a difference what one of two providers does not say", () =>
  Effect.gen(function* () {
    const { liar, scene, signed } = yield* withLiar((honest, other) => [honest, other])
    yield* liar.tell(({ method }, result) =>
      method === "eth_getTransactionReceipt" && result !== null ? { ...(result as object), logs: [] } : result
    )
    yield* scene.mining
    const { result } = yield* scene.send(signed)
    expect(result.transfers).toEqual([])
    expect(result.differences.length).toBeGreaterThan(0)
    yield* liar.tell()
    expect((yield* scene.send(signed)).result).toMatchObject({ differences: [] })
    yield* everything(scene)
  })
)

/** Whether a call asks, alone or in a batch of Multicall3, which authorizations were carried out. */
const asksForUsed = ({ method, params: [asked] }: Asked): boolean =>
  method === "eth_call" &&
  JSON.stringify(asked).includes(toFunctionSelector("authorizationState(address,bytes32)").slice(2))

const unanswered: ReadonlyArray<readonly [what: string, edit: Edit]> = [
  ["does not answer", (call, result) => (asksForUsed(call) ? Promise.reject(new Error("silent")) : result)],
  // Neither a result of Multicall3 nor a boolean.
  ["answers garbage", (call, result) => (asksForUsed(call) ? numberToHex(2n, { size: 32 }) : result)]
]

it.scopedLive.each(unanswered)(
  "accounts by no provider alone while the other one %s of authorizations",
  ([, edit]) =>
    Effect.gen(function* () {
      const { scene, signed } = yield* prepared
      let isRight = true
      const other = yield* inFrontOf(scene.local.url, (call, result) => (isRight ? result : edit(call, result)))
      scene.change({ rpcUrls: [other.url, scene.local.url].map((url) => Redacted.make(url)) })
      const sending = yield* Effect.fork(scene.send(signed))
      yield* untilSaid(scene, sending, "of 5 transactions sent")
      isRight = false
      yield* scene.mining
      yield* untilSaid(scene, sending, "5 confirmed")
      yield* untilSaid(scene, sending, "no other provider of rpc_urls answers, and one alone does not decide")
      expect(yield* Fiber.poll(sending)).toEqual(Option.none())
      const journal = readFileSync(scene.journalPath, "utf8")
      expect(journal).not.toMatch(/"event":"(accounted|finished)"/)
      isRight = true
      const { result } = yield* Fiber.join(sending)
      expect(result.differences).toEqual([])
      expect(result.transfers).toHaveLength(5)
      expect(holdsExactly(result)).toBe(true)
      yield* everything(scene)
    }),
  // Each waits for the retries of a provider that fails.
  { concurrent: true }
)

it.scopedLive("does not believe a provider that has a transaction in a block far above the head", () =>
  Effect.gen(function* () {
    const { liar, scene, signed } = yield* withLiar((honest, other) => [other, honest])
    const far = 1_000_000
    const sending = yield* Effect.fork(scene.send(signed))
    yield* untilSaid(scene, sending, "of 5 transactions sent")
    yield* liar.tell(({ method, params: [transactionHash] }, result) =>
      method === "eth_getTransactionReceipt"
        ? { transactionHash, blockHash: `0x${"fa".repeat(32)}`, blockNumber: numberToHex(far), status: "0x1" }
        : result
    )
    const believed = () => scene.said.filter((text) => /[1-9] in a block/.test(text))
    const doubted = () => scene.said.some((text) => text.includes("it is not believed"))
    yield* untilTrue(sending, () => doubted() || believed().length > 0)
    expect(believed()).toEqual([])
    expect(scene.said).toContainEqual(
      expect.stringMatching(`^a provider has 0x[0-9a-f]{64} in block ${far}, and the head is \\d+: it is not believed$`)
    )
    expect(readFileSync(scene.journalPath, "utf8")).not.toContain('"event":"mined"')
    yield* scene.mining
    // By what the other one says.
    yield* untilSaid(scene, sending, "5 in a block, 0 confirmed")
    yield* untilSaid(scene, sending, "no two providers say the same")
    yield* liar.tell()
    const { result } = yield* Fiber.join(sending)
    expect(result.differences).toEqual([])
    expect(holdsExactly(result)).toBe(true)
    expect(scene.said.filter((text) => text.includes("a reorg took"))).toEqual([])
    yield* everything(scene)
  })
)

it.scopedLive("plans nothing with a nonce on which two providers differ", () =>
  Effect.gen(function* () {
    const { liar, scene } = yield* withLiar((honest, other) => [other, honest])
    yield* liar.tell(({ method }, result) => (method === "eth_getTransactionCount" ? "0x9" : result))
    expect(yield* refusal(scene.plan({ received: scene.received(5) }))).toContain("Providers differ on the nonce")
  })
)

const dearer =
  (by: bigint): Lie =>
  ({ method }, result) => {
    if (method === "eth_maxPriorityFeePerGas") return numberToHex(ether)
    const { baseFeePerGas } = (result ?? {}) as { readonly baseFeePerGas?: Hex }
    if (method !== "eth_getBlockByNumber" || baseFeePerGas === undefined) return result
    return { ...(result as object), baseFeePerGas: numberToHex(BigInt(baseFeePerGas) * by) }
  }

it.scopedLive("takes the lower fees of two providers, and no absurd tip of one alone", () =>
  Effect.gen(function* () {
    const { liar, scene, signed } = yield* withLiar((honest, other) => [other, honest])
    const { fees } = signed.plan
    yield* liar.tell(dearer(1_000n))
    const { plan } = yield* scene.plan({ received: scene.received(5) })
    expect(plan.fees).toEqual(fees)
    // Above the first step, at the last one.
    yield* liar.tell(dearer(2n))
    yield* scene.mining
    const { result } = yield* scene.send(signed, { patience: Duration.minutes(10) })
    expect(result.differences).toEqual([])
    const steps = readFileSync(scene.journalPath, "utf8").matchAll(/"event":"sending".*?"step":(\d)/g)
    expect(new Set(Array.from(steps, ([, step]) => step))).toEqual(new Set(["0"]))
    scene.change({ rpcUrls: [Redacted.make(liar.url)] })
    yield* scene.pay("USDC", 1, 20n * usd)
    const alone = yield* scene.plan({ received: scene.received(1) })
    expect(alone.plan.fees[0].tip).toBe(`${5n * 10n ** 9n}`)
  })
)

it.scopedLive("shows a contract's reason in one line without control characters", () =>
  Effect.gen(function* () {
    const { liar, scene } = yield* withLiar((_, other) => [other])
    yield* liar.tell(({ method, params: [asked] }, result) => {
      if (method !== "eth_simulateV1") return result
      const [{ calls }] = (asked as { readonly blockStateCalls: [{ readonly calls: ReadonlyArray<unknown> }] })
        .blockStateCalls
      const message = `no\n\u001b[2J\u202ething ${"x".repeat(500)}`
      return [{ calls: calls.map(() => ({ status: "0x0", logs: [], error: { message } })) }]
    })
    const shown = yield* refusal(scene.plan({ received: scene.received(5) }))
    expect(shown).toContain("its contract refuses the transfer: no \\u001b[2J\\u202ething xxx")
    expect(shown).toMatch(/^[\P{C}]{1,400}$/u)
  })
)
