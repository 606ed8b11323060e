/** A plan in words, before it is signed. */
import { Array } from "effect"
import { formatUnits, getAddress } from "viem"
import { chainTraits } from "../Domain/Chain.ts"
import { decimalsOf, isToken } from "../Domain/Currency.ts"
import { iso } from "../lib/moment.ts"
import { quantityText } from "../lib/quantities.ts"
import { shownLine } from "../lib/text.ts"
import { presets } from "../Settings/publicNetworks.ts"
import { gwei } from "./fees.ts"
import { type Plan, type PlannedMove, receiverOf, totalsOf } from "./Plan.ts"
import { authorizationsOf, highestFeeOf, plannedTransactions } from "./transactions.ts"

/** The name of a plan's network. */
export const networkText = ({ chain, chainId, mode }: Pick<Plan, "chain" | "chainId" | "mode">): string =>
  `${chainTraits[chain].displayName} (${mode}, chain id ${chainId})`

/** What a move is for: money that is collected goes to the operator, a refund to a customer. */
export type ReceiverRole = "collected" | "refund"
const roleOf = ({ refund }: PlannedMove): ReceiverRole => (refund === undefined ? "collected" : "refund")

/** Where money goes, each address once for each role, in EIP-55 form. */
export const receiversOf = (plan: Plan) =>
  Object.values(
    Array.groupBy(
      plan.moves.map((move) => ({ role: roleOf(move), address: getAddress(receiverOf(plan, move)), move })),
      ({ address, role }) => `${role} ${address}`
    )
  ).map((all) => ({ role: all[0].role, address: all[0].address, moves: Array.map(all, ({ move }) => move) }))
export type PlannedReceiver = ReturnType<typeof receiversOf>[number]

/** Wei that all transactions cost at most: each at its last step, which is the dearest, with the fee of its data. */
export const highestCost = (plan: Plan): bigint =>
  plannedTransactions(plan, []).reduce((sum, unsent) => sum + highestFeeOf(unsent), 0n)

const totalsText = (plan: Plan, moves: Plan["moves"]): string =>
  totalsOf({ ...plan, moves })
    .map(({ amount, count: n, currency, decimals }) => {
      // Less gas than is set aside for it leaves more.
      const isRest = moves.some(({ refund, way }) => way === "native" && refund === undefined)
      const least = isRest && currency === plan.coin ? " at least" : ""
      return `${formatUnits(BigInt(amount), decimals)} ${currency}${least} in ${quantityText(n, "transfer")}`
    })
    .join(", ")

/** What goes to each receiver: what is collected in sum, refund by refund. */
const receiverLines = (plan: Plan): ReadonlyArray<readonly [string, string]> =>
  receiversOf(plan).flatMap(({ address, moves, role }) => [
    [role === "refund" ? "Refund to" : "To", address] as const,
    ...(role === "collected"
      ? [["", totalsText(plan, moves)] as const]
      : moves.map(
          (move) => ["", `${totalsText(plan, [move])}, the refund of ${move.exception ?? move.refund}`] as const
        ))
  ])

/** Wei that the sponsor sends to addresses for their gas. */
const fundingLine = ({ coin, moves }: Plan): ReadonlyArray<readonly [string, string]> => {
  const funded = moves.filter(({ funding }) => funding !== "0")
  const sum = funded.reduce((all, { funding }) => all + BigInt(funding), 0n)
  const many = quantityText(funded.length, "transfer")
  return sum === 0n ? [] : [["Fundings", `${formatUnits(sum, 18)} ${coin} in ${many} of the sponsor, for gas`]]
}

/** What a plan calls a token may be another one: the contract decides. */
const tokenLines = ({ chain, mode, tokens }: Plan): ReadonlyArray<readonly [string, string]> =>
  tokens.map(({ contract, decimals, symbol }, i) => {
    const known = Object.entries(presets[mode][chain].tokens).find(([name]) => name === symbol)?.[1]
    const isOther = known !== undefined && known.toLowerCase() !== contract.toLowerCase()
    const note = isOther ? `, NOT the ${symbol} of the public network` : ""
    const usual = isToken(symbol) ? decimalsOf[symbol] : 0
    const scale = usual === decimals ? "" : `, NOT the ${usual} decimals of public networks: amounts mislead`
    return [i === 0 ? "Tokens" : "", `${symbol} is ${getAddress(contract)}, ${decimals} decimals${note}${scale}`]
  })

/** Everything that a signer has to look at, a line each. */
export const planText = (plan: Plan): string => {
  const { block, coin, digest, fees, leftOut, validBefore, words } = plan
  const { length: authorizations } = authorizationsOf(plan)
  const transactions = quantityText(plannedTransactions(plan, []).length, "transaction")
  const cost = formatUnits(highestCost(plan), 18)
  const most = fees.at(-1)?.most ?? "0"
  const lines: ReadonlyArray<readonly [string, string]> = [
    ["Chain", networkText(plan)],
    ["Plan", words],
    ["", digest],
    ["As of", `block ${block.number}, ${iso(block.time * 1000)}`],
    ...(authorizations === 0 ? [] : [["Until", iso(validBefore * 1000)] as const]),
    ["In total", totalsText(plan, plan.moves)],
    ...receiverLines(plan),
    ...tokenLines(plan),
    ["Fees", `${cost} ${coin} at most, at up to ${gwei(BigInt(most))} gwei for a unit of gas`],
    ...fundingLine(plan),
    ["Signs", `${quantityText(authorizations, "authorization")}, ${transactions}`],
    ...(leftOut.length === 0 ? [] : [["Left out", quantityText(leftOut.length, "balance")] as const])
  ]
  // Not cut: a long amount of one token could hide what follows it. Names and amounts have limits of their own.
  return lines.map(([name, text]) => shownLine(`${name.padEnd(10)}${text}`, Number.POSITIVE_INFINITY)).join("\n")
}
