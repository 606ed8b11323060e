/** A plan in words, before it is signed. */
import { formatUnits, getAddress } from "viem"
import { chainTraits } from "../Domain/Chain.ts"
import { iso } from "../Domain/Timestamp.ts"
import { presets } from "../Settings/publicNetworks.ts"
import { type Plan, receiverOf, totalsOf } from "./Plan.ts"
import { authorizationsOf, highestFeeOf, plannedTransactions } from "./transactions.ts"

/** A fee in gwei, as people say it. */
export const gwei = (wei: bigint): string => formatUnits(wei, 9)

/** The name of a plan's network. */
export const networkText = ({ chain, chainId, mode }: Pick<Plan, "chain" | "chainId" | "mode">): string =>
  `${chainTraits[chain].displayName} (${mode}, chain id ${chainId})`

/** Whom the plan sends to, each once, in EIP-55 form. */
export const receiversOf = (plan: Plan): ReadonlyArray<string> => [
  ...new Set(plan.moves.map((move) => getAddress(receiverOf(plan, move))))
]

/** Wei that all transactions cost at most: each at its last step, which is the dearest, with the fee of its data. */
export const highestCost = (plan: Plan): bigint =>
  plannedTransactions(plan, []).reduce((sum, unsent) => sum + highestFeeOf(unsent), 0n)

const count = (n: number, what: string): string => `${n} ${what}${n === 1 ? "" : "s"}`

const totalsText = (plan: Plan, moves: Plan["moves"]): string =>
  totalsOf({ ...plan, moves })
    .map(
      ({ amount, count: n, currency, decimals }) =>
        `${formatUnits(amount, decimals)} ${currency} in ${count(n, "transfer")}`
    )
    .join(", ")

/** What goes to each receiver: first what is collected, then refund by refund. */
const receiverLines = (plan: Plan): ReadonlyArray<readonly [string, string]> =>
  receiversOf(plan).flatMap((receiver) => {
    const here = plan.moves.filter((move) => getAddress(receiverOf(plan, move)) === receiver)
    const collected = here.filter(({ refund }) => refund === undefined)
    return [
      ["To", receiver] as const,
      ...(collected.length === 0 ? [] : [["", totalsText(plan, collected)] as const]),
      ...here
        .filter(({ refund }) => refund !== undefined)
        .map((move) => ["", `${totalsText(plan, [move])}, the refund of ${move.refund}`] as const)
    ]
  })

/** What a plan calls a token may be another one: the contract decides. */
const tokenLines = ({ chain, mode, tokens }: Plan): ReadonlyArray<readonly [string, string]> =>
  tokens.map(({ contract, decimals, symbol }, i) => {
    const known = Object.entries(presets[mode][chain].tokens).find(([name]) => name === symbol)?.[1]
    const isOther = known !== undefined && known.toLowerCase() !== contract.toLowerCase()
    const note = isOther ? `, NOT the ${symbol} of the public network` : ""
    return [i === 0 ? "Tokens" : "", `${symbol} is ${getAddress(contract)}, ${decimals} decimals${note}`]
  })

/** Everything that a signer has to look at, a line each. */
export const planText = (plan: Plan): string => {
  const { block, coin, digest, fees, leftOut, words } = plan
  const most = fees.at(-1)?.most ?? "0"
  const lines: ReadonlyArray<readonly [string, string]> = [
    ["Chain", networkText(plan)],
    ["Plan", words],
    ["", digest],
    ["As of", `block ${block.number}, ${iso(block.time * 1000)}`],
    ["In total", totalsText(plan, plan.moves)],
    ...receiverLines(plan),
    ...tokenLines(plan),
    [
      "Fees",
      `${formatUnits(highestCost(plan), 18)} ${coin} at most, at up to ${gwei(BigInt(most))} gwei for a unit of gas`
    ],
    [
      "Signs",
      `${count(authorizationsOf(plan).length, "authorization")}, ${count(plannedTransactions(plan, []).length, "transaction")}`
    ],
    ...(leftOut.length === 0 ? [] : [["Left out", count(leftOut.length, "balance")] as const])
  ]
  return lines.map(([name, text]) => `${name.padEnd(10)}${text}`).join("\n")
}
