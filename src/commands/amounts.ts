import { Effect } from "effect"
import { listTokens } from "../Chains/repairOperations.ts"
import { decimalsOn, formatAmount, type NamedNetwork } from "../Domain/Currency.ts"
import { ask, type ControlTarget } from "./askDaemon.ts"

/** What has an amount of base units: a receipt, an exception, a credit. */
interface Amount {
  readonly currency: string
  readonly amount: string
}

/** Words an amount on a network for people, see `formatAmount`. */
export type ShowAmount = (network: NamedNetwork, amount: Amount) => string

/**
 * How amounts are shown: with the decimals of the configuration, which only the daemon may be able to read. In base units
 * where the daemon is of a version that does not tell them: wrong decimals would be worse.
 */
export const amountsAt = Effect.fn("commands.amountsAt")(function* (place: ControlTarget) {
  const networks = yield* "socket" in place
    ? Effect.orElseSucceed(ask(place, listTokens, {}), () => undefined)
    : Effect.succeed(place.chains)
  const show: ShowAmount = (network, { amount, currency }) =>
    formatAmount(amount, currency, networks && decimalsOn(networks, network, currency))
  return show
})

/** Words a result that has amounts. */
export const withAmounts =
  <A>(render: (result: A, show: ShowAmount) => string) =>
  (result: A, _: unknown, place: ControlTarget) =>
    Effect.map(amountsAt(place), (show) => render(result, show))
