/** What the commands `tilld sweep` show of a plan, of what was signed, and of a broadcast. */

import { formatUnits } from "viem"
import { type LeftOut, type Plan, totalsOf } from "../Collect/Plan.ts"
import { highestCost, planText, receiversOf } from "../Collect/planText.ts"
import type { SweepResult, SweepTotal } from "../Collect/reconcile.ts"
import type { Signed } from "../Collect/Signed.ts"
import { plannedTransactions } from "../Collect/transactions.ts"
import { quantityText } from "../lib/quantities.ts"
import { shownLine } from "../lib/text.ts"

const wei = (plan: Plan, amount: bigint): string => `${formatUnits(amount, 18)} ${plan.coin}`

/** How many moves go which way, by token. */
const waysOf = (plan: Plan): ReadonlyArray<string> => {
  const counts = new Map<string, number>()
  for (const { token, way } of plan.moves) {
    const name = `${token ?? plan.coin} ${wording[way]}`
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  return Array.from(counts, ([name, count]) => `${count} of ${name}`)
}

const wording = {
  authorization: "signed, carried out by the sponsor (EIP-3009)",
  token: "transferred, with gas from the sponsor",
  native: "sent, less its gas"
} as const satisfies Readonly<Record<Plan["moves"][number]["way"], string>>

/** Balances that stay, by the reason. */
const reasonsOf = (leftOut: ReadonlyArray<LeftOut>): ReadonlyArray<string> =>
  leftOut.map(({ address, amount, currency, decimals, why }) =>
    shownLine(`${address}: ${formatUnits(BigInt(amount), decimals)} ${currency}: ${why}`, 190)
  )

const sponsorText = (plan: Plan): string => {
  const [needs, has] = [BigInt(plan.sponsor.needsWei), BigInt(plan.sponsor.hasWei)]
  const state =
    needs <= has
      ? `has ${wei(plan, has)}, and needs ${wei(plan, needs)} at most`
      : `needs ${wei(plan, needs)}, and has ${wei(plan, has)}: send it ${wei(plan, needs - has)} before you broadcast`
  return `Sponsor   ${plan.sponsor.address} ${state}`
}

/** Left-out balances that are listed. */
const mostListed = 20

/** What an operator reads of a plan that was made. */
export const madeText = (
  plan: Plan,
  { file, includeOpen, seesFees }: { readonly file: string; readonly includeOpen: boolean; readonly seesFees: boolean }
): string => {
  const reasons = reasonsOf(plan.leftOut)
  return [
    planText(plan),
    ...waysOf(plan).map((way, i) => `${i === 0 ? "Ways" : ""}`.padEnd(10) + way),
    sponsorText(plan),
    ...reasons.slice(0, mostListed).map((reason, i) => `${i === 0 ? "Stays" : ""}`.padEnd(10) + reason),
    ...(reasons.length > mostListed ? [`          and ${reasons.length - mostListed} more, all in ${file}`] : []),
    ...(seesFees
      ? []
      : ["Note      no provider simulates transfers (eth_simulateV1): a token that keeps a fee was not seen"]),
    ...(includeOpen
      ? ["Note      addresses that wait may be in it: its broadcast is asked for --include-open, too"]
      : []),
    `Written to ${file}. Take it to where the seed is: tilld sweep sign ${file} -o signed.json`
  ].join("\n")
}

/** The plan as `--json` shows it; the file has every move. */
export const madeJson = (plan: Plan, seesFees: boolean, file: string) => ({
  ...{ file, chain: plan.chain, mode: plan.mode, destination: plan.destination },
  ...{ digest: plan.digest, words: plan.words, block: plan.block },
  totals: totalsOf(plan),
  ...{ moves: plan.moves.length, transactions: plannedTransactions(plan, []).length },
  ...{ highestCostWei: `${highestCost(plan)}`, sponsor: plan.sponsor, leftOut: plan.leftOut, seesFees }
})

/** What was signed, as `--json` shows it. */
export const signedJson = ({ authorizations, plan, transactions }: Signed, file: string) => ({
  ...{ file, chain: plan.chain, mode: plan.mode },
  receivers: receiversOf(plan).map(({ address, moves, role }) => ({
    ...{ address, role, totals: totalsOf({ ...plan, moves }) },
    ...(role === "refund" ? { refunds: moves.map(({ refund }) => refund) } : {})
  })),
  ...{ digest: plan.digest, words: plan.words },
  ...{ authorizations: authorizations.length, transactions: transactions.length }
})

const lineOf = ({ before, cameMeanwhile, currency, decimals, gas, received, stayed }: SweepTotal): string => {
  const shown = (amount: string) => formatUnits(BigInt(amount), decimals)
  const sum = [`${shown(received)} received`, ...(gas === "0" ? [] : [`${shown(gas)} gas`]), `${shown(stayed)} stayed`]
  const more = cameMeanwhile === "0" ? "" : `; ${shown(cameMeanwhile)} came meanwhile, and stays`
  return `${currency}: ${shown(before)} before = ${sum.join(" + ")}${more}`
}

/** What was moved, each currency's sum, then what is not as it should be. */
export const resultText = ({ differences, totals, transfers }: SweepResult): string => {
  const hashes = [...new Set(transfers.map(({ hash }) => hash))]
  const many = `${quantityText(transfers.length, "transfer")} ${transfers.length === 1 ? "was" : "were"}`
  return [
    `${many} made, with the chain's confirmations`,
    ...[...new Set(transfers.map(({ to }) => to))].map((to) => `To ${to}`),
    ...hashes.slice(0, mostListed).map((hash) => `In ${hash}`),
    ...(hashes.length > mostListed ? [`and ${hashes.length - mostListed} more transactions, all in the journal`] : []),
    ...transfers.flatMap(({ address, refund }) =>
      refund === undefined ? [] : [`${refund} was sent back from ${address}`]
    ),
    ...totals.map(lineOf),
    ...differences.map(({ address, amount, currency, why }) => {
      const decimals = totals.find((total) => total.currency === currency)?.decimals ?? 0
      return `DIFFERENCE  ${address}: ${formatUnits(BigInt(amount), decimals)} ${currency}: ${why}`
    })
  ].join("\n")
}
