/** Whether a signed plan still fits the chain: nonces, balances, fees, the sponsor. Each thing that does not is a refusal. */
import { Array as Arr, Effect, Order } from "effect"
import { formatUnits, getAddress } from "viem"
import { assetsOf, holdingKey, readHoldings } from "../Chains/balances/holdings.ts"
import { type ChainAccess, readingBy, readPricedHead } from "../Chains/providers/chainAccess.ts"
import { readContractViews, type ViewResult } from "../Chains/rpc/contractViews.ts"
import { optional, sendBatch, sendInBatches } from "../Chains/rpc/methods.ts"
import type { RpcClient } from "../Chains/rpc/Rpc.ts"
import { RpcError } from "../Chains/rpc/RpcError.ts"
import { getPendingCount, getPricedHead } from "../Chains/rpc/sendingMethods.ts"
import { receiptReader } from "../Chains/rpc/transactionMethods.ts"
import { isSameAddress } from "../Domain/Address.ts"
import type { BlockRef } from "../Domain/Receipt.ts"
import { iso } from "../lib/moment.ts"
import { hdWallet } from "../Settings/hdWallet.ts"
import { gwei } from "./fees.ts"
import { collectRefusal, type Plan } from "./Plan.ts"
import type { Ready } from "./Signed.ts"
import { authorizationsOf, isUsed, mostOf, usedView } from "./transactions.ts"

const getMined = receiptReader("transactionHash", "blockHash", "blockNumber")

/** Where a transaction is. */
export interface MinedAt {
  readonly hash: string
  readonly step: number
  readonly blockHash: string
  readonly blockNumber: number
}

/** Which of these variants is in a block, of each transaction. */
export const findMined = Effect.fn("Collect.findMined")(function* (
  client: RpcClient,
  wanted: ReadonlyArray<{ readonly hashes: ReadonlyArray<string> }>
) {
  const asked = wanted.flatMap(({ hashes }, i) => hashes.map((hash, step) => ({ i, hash, step })))
  const calls = asked.map(({ hash }) => optional(getMined(hash)))
  const receipts = yield* sendInBatches(client, calls)
  const found: Array<MinedAt | undefined> = wanted.map(() => undefined)
  for (const [at, { hash, i, step }] of asked.entries()) {
    const receipt = receipts[at]
    if (receipt?.transactionHash === hash) found[i] = { ...receipt, hash, step }
  }
  return found
})

/** Addresses of the plan, the sponsor's last, each once. */
export const addressesOf = (plan: Plan): ReadonlyArray<string> => [
  ...new Set([...plan.moves.map(({ address }) => address), plan.sponsor.address])
]

/** Whether each authorization of the plan was carried out, by whomever: by the place of its move. */
export const readUsed = (client: RpcClient, plan: Plan) =>
  Effect.gen(function* () {
    const used = new Map<number, boolean>()
    for (const part of Arr.chunksOf(authorizationsOf(plan), 200)) {
      const views = part.map(({ message, token }) => usedView(token.contract, message.from, message.nonce))
      const results: ReadonlyArray<ViewResult> = yield* readContractViews(client, views)
      for (const [i, { place, token }] of part.entries()) {
        const is = isUsed(results[i])
        if (is === undefined) {
          const detail = `it does not tell whether an authorization of ${token.symbol} is used`
          return yield* new RpcError({ host: client.host, method: "eth_call", reason: "garbage", detail })
        }
        used.set(place, is)
      }
    }
    return used
  })

/** What a plan touches, by `holdingKey`: the coin of all its addresses, and each token where that moves. */
const touchedBy = (plan: Plan): ReadonlyArray<string> => [
  ...new Set([
    ...addressesOf(plan).map((address) => holdingKey(plan.coin, address)),
    ...plan.moves.map(({ address, token = plan.coin }) => holdingKey(token, address))
  ])
]

/** Reads what a plan's addresses have. */
export const readPlanned = (client: RpcClient, plan: Plan, head: BlockRef) =>
  readHoldings(client, [{ symbol: plan.coin, contract: undefined }, ...plan.tokens], addressesOf(plan), head)

/** Seconds that authorizations have to be good for when their transactions are sent. */
const leastValidity = 600

const planAgain = "Make a new plan: tilld sweep plan"

/** Why a plan cannot be of this configuration, whoever has signed it: its refunds would be noted as paid. */
export const foreignProblem = ({ chain }: ChainAccess, plan: Plan, xpub: string): string | undefined => {
  const network = `${plan.chain}.${plan.mode}`
  if (plan.chainId !== chain.chainId) {
    return `The plan is for chain ${plan.chainId}, and ${network} is chain ${chain.chainId}: nothing was sent.`
  }
  const assets = assetsOf(chain)
  const token = plan.tokens.find(
    ({ contract, decimals, symbol }) =>
      !assets.some((one) => isSameAddress(one.contract, contract) && one.symbol === symbol && one.decimals === decimals)
  )
  if (token !== undefined) {
    return `${token.contract} is not the ${token.symbol} of ${network} in this configuration: nothing was sent.`
  }
  const wallet = hdWallet(xpub)
  const move = plan.moves.find(({ address, index }) => !isSameAddress(wallet.address(index), address))
  const stranger = isSameAddress(wallet.sponsor, plan.sponsor.address) ? move?.address : plan.sponsor.address
  return stranger === undefined
    ? undefined
    : `${stranger} is of another wallet than the configured one: name the extended public key that the plan was made with (--xpub). Nothing was sent.`
}

/** Reads how the chain stands. What is under way counts as sent. */
const readStanding = (client: RpcClient, plan: Plan, ready: ReadonlyArray<Ready>) =>
  Effect.gen(function* () {
    const senders = [...new Set(ready.map(({ from }) => from))]
    const nonces = yield* sendInBatches(client, senders.map(getPendingCount))
    const [head] = yield* sendBatch(client, [getPricedHead])
    const holdings = yield* readPlanned(client, plan, head)
    const used = yield* readUsed(client, plan)
    const mined = yield* findMined(client, ready)
    return { head, holdings, used, mined, nonces: new Map(senders.map((sender, i) => [sender, nonces[i] ?? 0])) }
  })

type Standing = Effect.Effect.Success<ReturnType<typeof readStanding>>

/** One that is too low would wait, and be paid after a plan that takes its place. */
const movedNonce = (ready: ReadonlyArray<Ready>, { nonces }: Standing): string | undefined => {
  const next = new Map(nonces)
  for (const { from, variants } of ready) {
    const [{ nonce }] = variants
    const found = next.get(from) ?? 0
    if (found !== nonce) {
      return `The next nonce of ${from} is ${found}, and ${nonce} was signed: it has sent another transaction since the plan was made, or the plan had a wrong one. ${planAgain}`
    }
    next.set(from, nonce + 1)
  }
  return undefined
}

/** What has to stay at addresses, and what is said where it would not: by `holdingKey`. */
export type HeldBack = ReadonlyMap<string, { readonly amount: bigint; readonly why: string }>

/** Why addresses (lower case) cannot move what they are to. What others have carried out has left already. */
const lackingAt = (plan: Plan, ready: ReadonlyArray<Ready>, { holdings, used }: Standing, held: HeldBack) => {
  const needs = new Map<string, bigint>()
  const take = (currency: string, address: string, amount: bigint) => {
    const key = holdingKey(currency, address)
    needs.set(key, (needs.get(key) ?? 0n) + amount)
  }
  for (const [place, { address, amount, token }] of plan.moves.entries()) {
    if (token !== undefined && used.get(place) !== true) take(token, address, BigInt(amount))
  }
  for (const unsent of ready) {
    const [{ to, value }] = unsent.variants
    take(plan.coin, unsent.from, mostOf(unsent))
    // A funding: what it brings is there before its move is sent.
    if (unsent.index === undefined && unsent.moves.length === 0) take(plan.coin, to ?? "", -value)
  }
  const found = new Map<string, string>()
  for (const [key, need] of needs) {
    const lack = need - (holdings.get(key) ?? 0n)
    const stays = held.get(key)
    if (need <= 0n || lack + (stays?.amount ?? 0n) <= 0n) continue
    const [currency = "", address = ""] = key.split(" ")
    const decimals = plan.tokens.find(({ symbol }) => symbol === currency)?.decimals ?? 18
    const lacks = `${getAddress(address)} lacks ${formatUnits(lack, decimals)} ${currency}`
    const short = isSameAddress(address, plan.sponsor.address)
      ? `The sponsor ${lacks} for the gas of what is to be sent: send it that much, and run this again`
      : `${lacks} of what the plan moves and pays: it has less than when the plan was made`
    found.set(address, lack > 0n || stays === undefined ? short : stays.why)
  }
  return found
}

const endedAuthorizations = (plan: Plan, { head, used }: Standing): string | undefined =>
  [...used.values()].includes(false) && head.time + leastValidity > plan.validBefore
    ? `The plan's authorizations end, or have ended, at ${iso(plan.validBefore * 1000)}. ${planAgain}`
    : undefined

/** Why nothing of a plan can be sent, by one provider. */
const standingProblem = (plan: Plan, ready: ReadonlyArray<Ready>, standing: Standing): string | undefined =>
  standing.mined.some((at) => at !== undefined)
    ? "Some of it was sent already, by this file, another copy or another plan: put its journal back beside the signed file, or make a new plan for the rest."
    : (movedNonce(ready, standing) ?? endedAuthorizations(plan, standing))

/**
 * Refuses a signed plan of which nothing was sent, where it does not fit by two providers. Gives what the addresses have, and why
 * some cannot move what they are to: of what the two differ on, as on what comes just now, the lower counts, and the rest as what
 * came meanwhile.
 */
export const checkStanding = Effect.fn("Collect.checkStanding")(function* (
  access: ChainAccess,
  plan: Plan,
  ready: ReadonlyArray<Ready>,
  held: HeldBack
) {
  const differ = (one: Standing, other: Standing) => {
    const [own, another] = [standingProblem(plan, ready, one), standingProblem(plan, ready, other)]
    return (own === undefined) === (another === undefined) ? undefined : `providers differ: ${own ?? another}`
  }
  const standings = yield* readingBy(access, { mustBeTwo: true, differ }, (client) => readStanding(client, plan, ready))
  const lacking = new Map(standings.flatMap((each) => [...lackingAt(plan, ready, each, held)]))
  const problem = standingProblem(plan, ready, standings[0]) ?? lacking.get(plan.sponsor.address.toLowerCase())
  if (problem !== undefined) return yield* collectRefusal(problem)
  const { baseFee } = yield* readPricedHead(access)
  const most = BigInt(plan.fees.at(-1)?.most ?? 0)
  if (baseFee > most) {
    return yield* collectRefusal(
      `A unit of gas costs ${gwei(baseFee)} gwei at present, and ${gwei(most)} at most was signed: wait until it is cheaper, or make a new plan.`
    )
  }
  const lowest = (key: string) =>
    Arr.min(
      Arr.map(standings, ({ holdings }) => holdings.get(key) ?? 0n),
      Order.bigint
    )
  return {
    block: Math.min(...standings.map(({ head }) => head.number)),
    before: Object.fromEntries(touchedBy(plan).map((key) => [key, `${lowest(key)}`])),
    lacking
  }
})
