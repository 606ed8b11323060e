/** What moves would do and need, asked of the chain without making them. */
import { Array as Arr, Effect, Either } from "effect"
import { decodeErrorResult, encodeFunctionData, erc20Abi, type Hex } from "viem"
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts"
import { readContractViews } from "../Chains/rpc/contractViews.ts"
import { sendBatch } from "../Chains/rpc/methods.ts"
import type { RpcClient } from "../Chains/rpc/Rpc.ts"
import {
  type Attempted,
  estimateGas,
  simulateAttempts,
  tryCall,
  type UnsentCall
} from "../Chains/rpc/sendingMethods.ts"
import { transferIn } from "../Chains/rpc/tokenTransfer.ts"
import { isSameAddress } from "../Domain/Address.ts"
import { shownLine } from "../lib/text.ts"
import type { PlannedToken } from "./Plan.ts"
import { signatureOf } from "./Signed.ts"
import { type Authorization, authorizationViews, authorizedCall, domainOf, typedData } from "./transactions.ts"

/** Transfers that are simulated or estimated in one request. */
const atOnce = 50

/** A transfer of a token, or of coin where `contract` is undefined. */
export interface PossibleTransfer {
  readonly from: string
  readonly to: string
  readonly contract: string | undefined
  readonly amount: bigint
}

const attemptOf = ({ amount, contract, from, to }: PossibleTransfer): UnsentCall =>
  contract === undefined
    ? { from, to, value: amount }
    : {
        from,
        to: contract,
        data: encodeFunctionData({ abi: erc20Abi, functionName: "transfer", args: [to as Hex, amount] })
      }

/** Base units that a simulated transfer brings to its receiver, by the token's logs. */
const arrivedOf = (transfer: PossibleTransfer, { logs }: Attempted): bigint =>
  logs
    .flatMap(transferIn)
    .filter(({ contract, to }) => isSameAddress(contract, transfer.contract) && isSameAddress(to, transfer.to))
    .reduce((sum, { amount }) => sum + amount, 0n)

const isFalse = (returned: string | undefined): boolean => returned !== undefined && /^0x0{64}$/.test(returned)

/** The text that a contract reverted with: Solidity's Error(string). */
const reasonIn = (returned: string | undefined): string | undefined =>
  Either.getOrUndefined(
    Either.try(() => {
      const { args, errorName } = decodeErrorResult({ data: (returned ?? "0x") as Hex })
      return errorName === "Error" ? String(args?.[0]) : undefined
    })
  )

/** What a contract or a provider says of a refusal, in one line that a terminal can show: whoever made it chose the text. */
const refused = (why = ""): string => {
  const text = shownLine(why.trim().replace(/\s+/g, " "))
  return `its contract refuses the transfer${text === "" ? "" : `: ${text}`}`
}

/** Why a token would not move as asked; undefined where it would. */
const refusalOf = (transfer: PossibleTransfer, done: Attempted): string | undefined => {
  if (!done.succeeded) return refused(reasonIn(done.returned) ?? done.message)
  if (transfer.contract === undefined) return undefined
  if (isFalse(done.returned)) return refused(undefined)
  const arrived = arrivedOf(transfer, done)
  return arrived === transfer.amount
    ? undefined
    : `its contract takes a fee: ${arrived} of ${transfer.amount} base units would arrive`
}

/** By plain calls, where a provider does not simulate: they show a refusal, and no fee that the token keeps. */
const tryEach = (client: RpcClient, transfers: ReadonlyArray<PossibleTransfer>) =>
  Effect.map(client.sendEach(transfers.map((transfer) => tryCall(attemptOf(transfer)))), (replies) =>
    replies.map((reply) => {
      if (Either.isLeft(reply)) return refused(reply.left.detail)
      return isFalse(String(reply.right)) ? refused(undefined) : undefined
    })
  )

/**
 * Why each transfer would not do what it should, in their order; undefined where it would. `seesFees`: a fee that a token keeps
 * would have been seen.
 */
export const refusalsOf = Effect.fn("Collect.refusalsOf")(function* (
  client: RpcClient,
  transfers: ReadonlyArray<PossibleTransfer>
) {
  let seesFees = true
  const found: Array<string | undefined> = []
  for (const part of Arr.chunksOf(transfers, atOnce)) {
    const simulated = seesFees
      ? yield* Effect.either(sendBatch(client, [simulateAttempts(part.map(attemptOf))]))
      : undefined
    if (simulated !== undefined && Either.isRight(simulated)) {
      const [results] = simulated.right
      found.push(...part.map((transfer, i) => results[i] && refusalOf(transfer, results[i])))
    } else {
      seesFees = false
      found.push(...(yield* tryEach(client, part)))
    }
  }
  return { found, seesFees }
})

/** A plain transfer of coin, which is exact wherever it is what a chain says: nothing runs that could take more. */
const plain = 21_000n
/** What else a transaction may take: a fifth. A store that is empty now may be full then, and the other way around. */
const withMargin = (gas: bigint): bigint => (gas === plain ? gas : (gas * 6n) / 5n)

/** The gas that each transfer needs, with its margin; on the left why it cannot be made. */
export const gasOfEach = Effect.fn("Collect.gasOfEach")(function* (
  client: RpcClient,
  transfers: ReadonlyArray<PossibleTransfer>
) {
  const parts = yield* Effect.forEach(
    Arr.chunksOf(transfers, atOnce),
    (part) => {
      const calls = part.map((transfer) => estimateGas(attemptOf(transfer)))
      return Effect.map(client.sendEach(calls), (replies) =>
        replies.map((reply, i) =>
          Either.flatMap(
            Either.mapLeft(reply, ({ detail }) => refused(detail)),
            (result) => Either.map(calls[i]?.decode(result) ?? Either.left("no estimate"), withMargin)
          )
        )
      )
    },
    { concurrency: 1 }
  )
  return parts.flat()
})

/** What an authorization takes more than the transfer that it makes. */
const authorizationMargin = 10_000n

/** Of a signed transfer that is tried: until when it is good, in Unix seconds, who carries it out, and where it goes. */
interface Trial {
  readonly chainId: number
  readonly validBefore: number
  readonly sponsor: string
  readonly to: string
}

/**
 * Whether a token takes signed transfers, and the gas that one takes more than a plain transfer: by what it says of itself, and
 * by one of nothing that a key of the moment signs. Undefined where it does not.
 */
export const authorizationOf = Effect.fn("Collect.authorizationOf")(function* (
  client: RpcClient,
  { chainId, sponsor, to, validBefore }: Trial,
  token: Omit<PlannedToken, "domain">
) {
  const { contract } = token
  const domain = domainOf(contract, chainId, yield* readContractViews(client, authorizationViews(contract)))
  if (domain === undefined) return undefined
  const holder = privateKeyToAccount(generatePrivateKey())
  const message: Authorization = {
    ...{ from: holder.address, to: to as Hex, value: 0n, validAfter: 0n },
    validBefore: BigInt(validBefore),
    nonce: generatePrivateKey()
  }
  const signature = yield* Effect.promise(() =>
    holder.signTypedData(typedData({ chainId }, { ...token, domain }, message))
  )
  const signed = { from: sponsor, to: contract, data: authorizedCall(message, signatureOf(signature)) }
  const nothing = attemptOf({ from: holder.address, to, contract, amount: 0n })
  const replies = yield* client.sendEach([estimateGas(signed), estimateGas(nothing)])
  const [whole, transfer] = replies.map((reply) =>
    Either.getOrUndefined(Either.flatMap(reply, (result) => estimateGas(signed).decode(result)))
  )
  return whole === undefined || transfer === undefined
    ? undefined
    : { domain, extraGas: (whole > transfer ? whole - transfer : 0n) + authorizationMargin }
})
