/** `tilld sweep broadcast`: the account, in words. */
import { formatUnits } from "viem"
import type { SweepResult, SweepTotal } from "../Collect/reconcile.ts"

const lineOf = ({ before, cameMeanwhile, currency, decimals, gas, received, stayed }: SweepTotal): string => {
  const shown = (amount: string) => formatUnits(BigInt(amount), decimals)
  const sum = [`${shown(received)} received`, ...(gas === "0" ? [] : [`${shown(gas)} gas`]), `${shown(stayed)} stayed`]
  const more = cameMeanwhile === "0" ? "" : `; ${shown(cameMeanwhile)} came meanwhile, and stays`
  return `${currency}: ${shown(before)} before = ${sum.join(" + ")}${more}`
}

/** Each currency's sum, then what is not as it should be. */
export const resultText = ({ differences, totals, transfers }: SweepResult): string =>
  [
    `${transfers.length} transfers were made, each with the chain's confirmations`,
    ...totals.map(lineOf),
    ...differences.map(
      ({ address, amount, currency, why }) => `DIFFERENCE  ${address}: ${amount} base units of ${currency}: ${why}`
    )
  ].join("\n")
