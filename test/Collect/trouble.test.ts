/** What a broadcast meets on its way: what fits no longer, what others do, reorgs and fees. */
import { existsSync, rmSync, statSync, writeFileSync } from "node:fs"
import { expect } from "@effect/vitest"
import { Duration, Effect, Fiber, Option, Runtime, Schedule } from "effect"
import { type Address, getAddress, type Hex, keccak256, numberToHex, size, toEventSelector } from "viem"
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts"
import { digested } from "../../src/Collect/Plan.ts"
import { type Signed, signatureOf } from "../../src/Collect/Signed.ts"
import { authorizationsOf, authorizedCall, typedData } from "../../src/Collect/transactions.ts"
import { iso } from "../../src/lib/moment.ts"
import { liveTest } from "../lib/scopedTest.ts"
import {
  type Collecting,
  funded,
  type Paid,
  prepared,
  refundId,
  refundOf,
  someone,
  untilSaid,
  untilTrue,
  usd,
  whileSending
} from "./collecting.ts"
import { refusal } from "./refusal.ts"

/** Three addresses with USDC, which takes authorizations, and two with USDT, which takes none. */
const five: ReadonlyArray<Paid> = [
  ["USDC", 3, 20n * usd],
  ["USDT", 2, 30n * usd, 3]
]
const oneOfUsdt: ReadonlyArray<Paid> = [["USDT", 1, 20n * usd]]
const threeOfUsdc: ReadonlyArray<Paid> = [["USDC", 3, 20n * usd]]

liveTest("sends nothing of a file that was changed, or for another configuration", function* () {
  const { plan, scene, signed } = yield* prepared(five)
  expect(yield* scene.refused({ ...signed, transactions: signed.transactions.slice(1) })).toContain(
    "Something in the signed file"
  )
  const [{ tokens } = expect.fail()] = scene.settings().chains
  scene.change({ chainId: 31_338 })
  expect(yield* scene.refused(signed)).toContain("The plan is for chain 31337, and ethereum.test is chain 31338")
  scene.change({ chainId: 31_337 })
  scene.replaceToken("USDT", someone())
  const usdt = plan.tokens.find(({ symbol }) => symbol === "USDT")?.contract
  expect(yield* scene.refused(signed)).toBe(
    `${usdt} is not the USDT of ethereum.test in this configuration: nothing was sent.`
  )
  expect(existsSync(scene.journalPath)).toBe(false)
  scene.change({ tokens })
  yield* scene.mining
  yield* scene.sent(signed)
})

liveTest("refuses moved nonces, a dear chain, and less than it needs; goes on once that is mended", function* () {
  const { plan, scene, signed } = yield* prepared(five)
  const { local, sponsor } = scene
  const setNonce = (address: string, nonce: Hex) => local.rpc("anvil_setNonce", [address, nonce])
  const source = plan.moves.find(({ way }) => way === "token")?.address ?? ""
  yield* setNonce(source, "0x1")
  expect(yield* scene.refused(signed)).toContain(
    `The next nonce of ${source} is 1, and 0 was signed: it has sent another transaction`
  )
  yield* setNonce(source, "0x0")
  // One that was planned with a nonce which the chain does not have yet would be payable later.
  yield* setNonce(sponsor, "0x2")
  const ahead = yield* scene.planned({ received: scene.received(5) })
  yield* setNonce(sponsor, "0x0")
  expect(yield* scene.refused(ahead.signed)).toContain(`The next nonce of ${sponsor} is 0, and 2 was signed`)
  // One that is under way is used.
  yield* scene.sendFrom(sponsor, { to: someone() })
  expect(yield* scene.refused(signed)).toContain(`The next nonce of ${sponsor} is 1, and 0 was signed`)
  yield* local.rpc("anvil_dropAllTransactions")

  const snapshot = yield* local.snapshot
  yield* scene.takeUsdc(0, 1n)
  expect(yield* scene.refused(signed)).toContain(
    `${scene.wallet.address(0)} lacks 0.000001 USDC of what the plan moves`
  )
  yield* local.revert(snapshot)

  const { baseFeePerGas } = yield* local.rpc<{ baseFeePerGas: Hex }>("eth_getBlockByNumber", ["latest", false])
  const mineFor = (fee: Hex) => Effect.zipRight(local.rpc("anvil_setNextBlockBaseFeePerGas", [fee]), local.mine())
  yield* mineFor(numberToHex(BigInt(baseFeePerGas) * 10n))
  expect(yield* scene.refused(signed)).toContain("A unit of gas costs")
  yield* mineFor(baseFeePerGas)
  const lacking = BigInt(plan.sponsor.needsWei) - 1n
  yield* local.rpc("anvil_setBalance", [sponsor, numberToHex(lacking)])
  expect(yield* scene.refused(signed)).toContain(`The sponsor ${sponsor} lacks 0.000000000000000001 ETH`)
  expect(existsSync(scene.journalPath)).toBe(false)
  yield* local.rpc("anvil_setBalance", [sponsor, numberToHex(lacking + 1n)])
  yield* scene.mining
  yield* scene.sent(signed)
})

liveTest("sends no authorizations that end within minutes", function* () {
  const { plan, scene, signed } = yield* prepared(threeOfUsdc)
  const last = plan.validBefore - 599
  yield* scene.local.rpc("evm_setNextBlockTimestamp", [numberToHex(last)])
  yield* scene.local.mine()
  expect((yield* scene.local.head).timestamp).toBe(last)
  expect(yield* scene.refused(signed)).toContain(
    `The plan's authorizations end, or have ended, at ${iso(plan.validBefore * 1000)}`
  )
})

/** The exceptions of an address that go back in one plan, by their amounts in USDC. */
const refunding = Effect.fnUntraced(function* (...amounts: ReadonlyArray<bigint>) {
  const scene = yield* funded([["USDC", 1, 20n * usd]])
  const refunds = amounts.map((amount) => refundOf(scene, amount, { amount: amount * usd }))
  return { scene, refunds, ...(yield* scene.planned({ refunds })) }
})

liveTest("refuses where the refunds of an address are more than it has by now, though each is less", function* () {
  const { scene, signed } = yield* refunding(2n, 3n, 7n)
  yield* scene.takeUsdc(0, 9n * usd)
  expect(yield* scene.refused(signed)).toContain(`${scene.wallet.address(0)} lacks 1 USDC of what the plan moves`)
})

/** Hands an authorization in, as somebody else may. */
const carryOut = ({ local }: Collecting, { authorizations, plan }: Signed, place: number) => {
  const one = authorizationsOf(plan)[place] ?? expect.fail("no authorization")
  const data = authorizedCall(one.message, signatureOf(authorizations[place] ?? ""))
  return Effect.zipRight(local.send({ to: one.token.contract as Address, data }), local.mine())
}

liveTest("counts an authorization that somebody else has carried out as done", function* () {
  const { scene, signed } = yield* prepared(five)
  yield* carryOut(scene, signed, 0)
  const sending = yield* Effect.fork(scene.send(signed, { patience: Duration.millis(500) }))
  // Between its beginning and its batch, which is not mined yet.
  const waiting = scene.local.rpc<{ pending: Hex }>("txpool_status")
  yield* whileSending(
    sending,
    Effect.repeat(waiting, { until: ({ pending }) => BigInt(pending) > 0n, schedule: Schedule.spaced("10 millis") })
  )
  yield* scene.local.rpc("evm_setAutomine", [false])
  yield* scene.local.rpc("anvil_dropAllTransactions")
  yield* carryOut(scene, signed, 1)
  yield* scene.mining
  const { transfers } = yield* scene.ends(Fiber.join(sending))
  expect(new Set(transfers.slice(0, 3).map(({ hash }) => hash)).size).toBe(3)
})

for (const [what, others, hashes] of [
  ["in one batch", [], 1],
  ["one of them by somebody else", [0], 2]
] as const) {
  liveTest(`counts each of two refunds of an address for itself, carried out ${what}`, function* () {
    const { plan, scene, signed } = yield* refunding(5n, 7n)
    expect(plan.moves.map(({ way }) => way)).toEqual(["authorization", "authorization"])
    for (const place of others) yield* carryOut(scene, signed, place)
    yield* scene.mining
    const { transfers } = yield* scene.sent(signed)
    expect(transfers.map(({ amount, refund }) => [refund, amount])).toEqual([
      [refundId(5), `${5n * usd}`],
      [refundId(7), `${7n * usd}`]
    ])
    expect(new Set(transfers.map(({ hash }) => hash)).size).toBe(hashes)
  })
}

liveTest("counts a refund that somebody else has carried out, whatever others use its nonce for", function* () {
  const { plan, scene, signed } = yield* refunding(5n)
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
  const { transfers } = yield* scene.sent(signed)
  expect(transfers.map(({ amount, refund }) => [refund, amount])).toEqual([[refundId(5), `${5n * usd}`]])
})

liveTest("pays a refund once, of however many plans that have it", function* () {
  const { plan, refunds, scene, signed } = yield* refunding(5n)
  const { plan: next, signed: again } = yield* scene.planned({ refunds, feeSteps: 2 })
  expect(next.digest).not.toBe(plan.digest)
  expect(authorizationsOf(next)[0]?.message.nonce).toBe(authorizationsOf(plan)[0]?.message.nonce)
  yield* carryOut(scene, again, 0)
  yield* scene.mining
  yield* scene.sent(signed)
  expect(yield* scene.arrived("USDC")).toBe(5n * usd)
  expect(yield* refusal(scene.plan({ refunds }))).toContain("exc_5 was sent back already")
})

liveTest("sends again what a reorg of three blocks took out", function* () {
  const { scene, signed } = yield* prepared(five)
  scene.change({ confirmations: 6 })
  const sending = yield* Effect.fork(scene.send(signed, { patience: Duration.minutes(10) }))
  const until = (what: string) => {
    const isSaid = Effect.as(scene.local.mine(), scene).pipe(
      Effect.map(({ said }) => said.some((text) => text.includes(what)))
    )
    const schedule = Schedule.spaced("100 millis")
    return whileSending(sending, Effect.repeat(isSaid, { until: (is) => is, schedule }))
  }
  yield* until("3 in a block")
  yield* scene.local.reorg(3)
  yield* until("a reorg took")
  yield* scene.mining
  yield* scene.ends(Fiber.join(sending))
})

liveTest("replaces what is stuck by the higher fees that were signed with it", function* () {
  const { plan, scene, signed } = yield* prepared(five)
  // Between the first step and the last one: what is sent at the first is not taken.
  const base = (BigInt(plan.fees[1]?.most ?? 0) + BigInt(plan.fees[2]?.most ?? 0)) / 2n
  const sending = yield* scene.sendUntil(signed, "of 5 transactions sent", { patience: Duration.millis(200) })
  const dear = scene.local
    .rpc("anvil_setNextBlockBaseFeePerGas", [numberToHex(base)])
    .pipe(Effect.zipRight(scene.local.mine()), Effect.delay("100 millis"))
  yield* Effect.forkScoped(Effect.forever(dear))
  const { transfers } = yield* scene.ends(Fiber.join(sending))
  const prices = yield* Effect.forEach(
    new Set(transfers.map(({ hash }) => hash)),
    (hash) => scene.local.rpc<{ maxFeePerGas: Hex }>("eth_getTransactionByHash", [hash]),
    { concurrency: 1 }
  )
  expect(prices.map(({ maxFeePerGas }) => `${BigInt(maxFeePerGas)}`)).toContain(plan.fees[2]?.most)
})

liveTest("gives its account again once it has finished, from its own journal alone", function* () {
  const { plan, scene, signed } = yield* prepared(five)
  yield* scene.mining
  const { result, wasFinished } = yield* scene.send(signed)
  expect(wasFinished).toBe(false)
  // Money that comes later is none of it.
  yield* scene.pay("USDC", 1, 5n * usd)
  expect(yield* scene.send(signed)).toEqual({ result, wasFinished: true })
  const next = yield* scene.planned({ received: scene.received(5) })
  expect(next.plan.digest).not.toBe(plan.digest)
  expect(yield* scene.refused(next.signed)).toContain("is the journal of another signed file")
  // Its last line alone is none.
  writeFileSync(scene.journalPath, `${scene.noted("finished")[0]}\n`)
  expect(yield* scene.refused(signed)).toContain("is the journal of another signed file")
  rmSync(scene.journalPath)
  expect(yield* scene.refused(signed)).toContain(
    "Some of it was sent already, by this file, another copy or another plan"
  )
})

liveTest("keeps its journal to itself, which has each transaction before a provider gets it", function* () {
  const { scene, signed } = yield* prepared(five)
  const isNoted: Array<boolean> = []
  yield* scene.askThrough(({ method, params: [raw] }, result) => {
    const hash = method === "eth_sendRawTransaction" ? keccak256(raw as Hex) : undefined
    if (hash) isNoted.push(scene.noted("sending").some((line) => line.includes(hash)))
    return result
  })
  const sending = yield* scene.sendUntil(signed, "of 5 transactions sent")
  expect(statSync(scene.journalPath).mode & 0o777).toBe(0o600)
  expect(yield* scene.refused(signed)).toContain("Another process works on")
  yield* scene.mining
  yield* scene.ends(Fiber.join(sending))
  expect(isNoted.length).toBeGreaterThanOrEqual(signed.transactions.length)
  expect(isNoted).not.toContain(false)
})

liveTest("gives up a transaction once what has used its nonce is as deep as the confirmations", function* () {
  const { scene, signed } = yield* prepared(oneOfUsdt)
  scene.change({ confirmations: 4 })
  let asked = 0
  yield* scene.askThrough(({ method, params: [, block] }, result) => {
    if (method === "eth_getTransactionCount" && block !== "latest") asked += 1
    return result
  }, undefined)
  const sending = yield* scene.sendUntil(signed, "1 of 2 transactions sent")
  yield* scene.local.rpc("anvil_dropAllTransactions")
  yield* scene.sendFrom(scene.sponsor, { to: someone() })
  yield* scene.local.mine()
  asked = 0
  // It has looked how deep that is, and goes on to look.
  yield* untilTrue(sending, () => asked >= 2)
  expect(yield* Fiber.poll(sending)).toEqual(Option.none())
  expect(scene.said.filter((text) => text.includes("given up"))).toEqual([])
  yield* scene.local.mine(3)
  yield* untilSaid(scene, sending, "has sent another transaction with the nonce that was signed: this one is given up")
  const { result } = yield* Fiber.join(sending)
  expect(result.transfers).toEqual([])
  expect(scene.said).toContain(`${scene.wallet.address(0)} gets no gas from the sponsor: this one is given up`)
})

liveTest("counts no authorization as done by a transfer without the token's event of its use", function* () {
  const { scene, signed } = yield* prepared(threeOfUsdc)
  const used = toEventSelector("AuthorizationUsed(address,bytes32)")
  yield* scene.askThrough(({ method }, result) => {
    if (method !== "eth_getTransactionReceipt" || result === null) return result
    const { logs, ...receipt } = result as { readonly logs: ReadonlyArray<{ readonly topics: ReadonlyArray<Hex> }> }
    return { ...receipt, logs: logs.filter(({ topics: [kind] }) => kind !== used) }
  })
  yield* scene.mining
  const { result } = yield* scene.send(signed)
  expect(result.transfers).toEqual([])
  const missing = result.differences.filter(({ why }) => why.startsWith("its authorization was carried out otherwise"))
  expect(missing.map(({ address }) => address)).toEqual([0, 1, 2].map(scene.wallet.address))
})

liveTest("accounts for the fee of data that a chain takes on top of the gas", function* () {
  const { scene, signed } = yield* prepared(threeOfUsdc, { chain: "base" })
  const dataFee = 1_000n
  const run = Runtime.runPromise(yield* Effect.runtime())
  yield* scene.askThrough(async ({ method, params: [, block, overrides] }, result) => {
    if (method === "eth_getTransactionReceipt" && result !== null) {
      return { ...(result as object), l1Fee: numberToHex(dataFee) }
    }
    if (method !== "eth_call" || overrides === undefined) return result
    // What each of the sponsor's transactions so far has cost on top. Its balance is the last word.
    const sent = await run(scene.local.rpc<Hex>("eth_getTransactionCount", [scene.sponsor, block]))
    return numberToHex(BigInt(result as Hex) - BigInt(sent) * dataFee, { size: size(result as Hex) })
  })
  yield* scene.mining
  const { totals, transfers } = yield* scene.sent(signed)
  const { effectiveGasPrice, gasUsed } = yield* scene.local.rpc<Record<"gasUsed" | "effectiveGasPrice", Hex>>(
    "eth_getTransactionReceipt",
    [transfers[0]?.hash]
  )
  expect(totals.find(({ currency }) => currency === "ETH")).toMatchObject({
    gas: `${BigInt(gasUsed) * BigInt(effectiveGasPrice) + dataFee}`,
    cameMeanwhile: "0"
  })
})

liveTest("accounts for the gas of a transaction that failed, and of the one that brought it", function* () {
  const { scene, signed } = yield* prepared(oneOfUsdt)
  const { local } = scene
  const [from, usdt] = [scene.wallet.address(0) as Address, local.tokens.USDT?.address as Address]
  const code = yield* local.rpc<Hex>("eth_getCode", [usdt, "latest"])
  const setCode = (to: Hex) => local.rpc("anvil_setCode", [usdt, to])
  const sending = yield* Effect.fork(scene.send(signed))
  yield* untilSaid(scene, sending, "1 of 2 transactions sent, 0 in a block")
  // PUSH0 PUSH0 REVERT: whatever is asked of the token fails.
  yield* setCode("0x5f5ffd")
  yield* local.mine()
  yield* untilSaid(scene, sending, "2 of 2 transactions sent, 1 in a block")
  yield* local.mine()
  yield* setCode(code)
  yield* scene.mining
  const { result } = yield* Fiber.join(sending)
  expect(result.transfers).toEqual([])
  expect(result.gas.map(({ payer, to }) => [payer, to])).toEqual([
    [signed.plan.sponsor.address, from],
    [from, getAddress(usdt)]
  ])
  const funding = BigInt(signed.plan.moves[0]?.funding ?? 0)
  expect(funding - BigInt(result.gas[1]?.wei ?? 0)).toBe(yield* local.balance(from))
})

liveTest("notes what was collected by the addresses that payments have, whatever the plan's case", function* () {
  const { plan, scene } = yield* prepared(oneOfUsdt)
  const { digest: _, words: __, ...unsigned } = plan
  const moves = plan.moves.map((move) => ({ ...move, address: move.address.toLowerCase() }))
  const lower = digested({ ...unsigned, destination: plan.destination.toLowerCase(), moves })
  yield* scene.mining
  const { result } = yield* scene.send(yield* scene.sign(lower))
  expect(result.differences).toEqual([])
  expect(result.transfers).toMatchObject([{ address: scene.wallet.address(0), to: getAddress(scene.destination) }])
})
