import { type Story, whyUncounted } from "../Payments/operatorViews.ts"

/** Why a receipt does not count, or what is missing until it is corroborated; empty for one that is. */
export const evidenceOf = (receipt: Story["receipts"][number]): string => {
  const { canonical, corroborated, deniedBy, unverifiable } = receipt
  if (!canonical) return `  does not count: ${whyUncounted(receipt)}`
  if (corroborated) return ""
  if (deniedBy !== undefined) return `  ${deniedBy} denies it, and no second provider has it`
  return unverifiable === true
    ? "  no second provider has the states or the trace that would show it"
    : "  no second provider has it yet"
}
