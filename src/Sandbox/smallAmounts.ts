import type { PaymentCurrency } from "../Domain/Currency.ts"

/** Base units, worth a few dollars each. */
export const smallAmounts: Readonly<Record<PaymentCurrency, bigint>> = {
  ETH: 10n ** 16n,
  USDC: 25n * 10n ** 6n,
  USDT: 25n * 10n ** 6n,
  DAI: 25n * 10n ** 18n,
  WBTC: 50_000n
}
