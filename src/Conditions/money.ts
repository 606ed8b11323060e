/** Is money missed? What the ledger says of it: money in no row, paid payments that wait, a chain on which payments have stopped. */
import { Array as Arr, BigDecimal, Clock, Duration, Effect } from "effect"
import * as Audit from "../Chains/balances/AuditRepo.ts"
import * as Ledger from "../Chains/ledger/LedgerRepo.ts"
import { required, sum } from "../Domain/Amount.ts"
import { type Network, networkKey } from "../Domain/Chain.ts"
import { decimalsOn, decimalText } from "../Domain/Currency.ts"
import { requirementOf } from "../Domain/Receipt.ts"
import { iso } from "../lib/moment.ts"
import { quantityText } from "../lib/quantities.ts"
import { worthOfWaiting } from "../Payments/addresses/Uncollected.ts"
import { confirmedSteadily, lastConfirmed, paidDownTo } from "../Payments/PaymentsRepo.ts"
import type { Prices } from "../Quotes/Prices.ts"
import type { ChainSettings, SettingsShape } from "../Settings.ts"
import type { Db } from "../Sql.ts"
import type { ConditionKind } from "./kinds.ts"
import { conditionOf } from "./standing.ts"

/** How long a paid payment may wait for its confirmation. */
const longestWait = Duration.toMillis("2 minutes")
/** A silence that is shorter is none, and one that is longer is unusual where it is so many times the longest of the weeks before. */
const leastSilence = Duration.toMillis("6 hours")
const times = 3
/** Addresses that a summary names. */
const named = 3

/** No one is woken for a test chain. */
const of = (kind: ConditionKind, { mode }: Network, subject: string, summary: string, remedy: string) =>
  conditionOf(kind, subject, summary, remedy, mode === "test" ? "note" : undefined)

const ofUnaccounted = ({ chains, payments }: SettingsShape, prices: Prices["Type"], reader: Db) =>
  Effect.map(Audit.told(reader), (told) => {
    const names = chains.map(networkKey)
    const found = told.filter((one) => names.includes(networkKey(one)))
    return Object.entries(Arr.groupBy(found, (one) => `${networkKey(one)} ${one.currency}`)).flatMap(
      ([subject, some]) => {
        const [first] = some
        const { chain, currency, mode } = first
        const amount = sum(some.map((one) => one.amount))
        const worth = worthOfWaiting(chains, prices.usd, { ...first, amount })
        // Anybody can send dust to an address of long ago.
        if (worth && BigDecimal.lessThan(worth, BigDecimal.unsafeFromString(payments.dustFloorUsd))) return []
        const text = decimalText(`${amount}`, decimalsOn(chains, first, currency)) ?? `${amount} base units of`
        const addresses = some.slice(0, named).map(({ address }) => address)
        const more = some.length > named ? ` and ${some.length - named} more` : ""
        return [
          of(
            "money_unaccounted",
            first,
            subject,
            `${text} ${currency} on ${chain}.${mode} came to addresses of tilld and is in no row: ${addresses.join(", ")}${more}`,
            `tilld claim HASH --chain ${chain} --mode ${mode}, with each transaction that a block explorer shows there`
          )
        ]
      }
    )
  })

const ofWaiting = Effect.fnUntraced(function* (chain: ChainSettings, reader: Db, now: number) {
  const scan = yield* Ledger.scan(reader, chain)
  if (scan === undefined) return []
  const paid = yield* paidDownTo(reader, chain, scan.head.number, chain.confirmations)
  const waiting = paid.filter(({ amount, block, received, since, toleranceBps, usdValue }) => {
    const tag = requirementOf(chain.policies, usdValue)
    const isDeep = tag === undefined || block <= (scan[tag] ?? -1)
    return isDeep && now - since > longestWait && BigInt(received) >= required({ amount: BigInt(amount), toleranceBps })
  })
  const [oldest] = waiting.toSorted((one, next) => one.since - next.since)
  if (oldest === undefined) return []
  const name = networkKey(chain)
  const minutes = quantityText(Math.floor((now - oldest.since) / 60_000), "minute")
  return [
    of(
      "payments_wait",
      chain,
      name,
      `paid payments that wait on ${name}, with all confirmations: ${waiting.length}, the oldest, ${oldest.id}, for ${minutes}`,
      "tilld doctor says which provider of the chain does not answer: a second one has to show the money"
    )
  ]
})

const ofSilence = Effect.fnUntraced(function* (chain: ChainSettings, reader: Db, now: number) {
  const last = yield* lastConfirmed(reader, chain)
  if (last === undefined || now - last < leastSilence) return []
  if (!(yield* confirmedSteadily(reader, chain, last, Math.ceil((now - last) / times)))) return []
  const name = networkKey(chain)
  return [
    of(
      "payments_stopped",
      chain,
      name,
      `no payment was confirmed on ${name} since ${iso(last)}: that is ${times} times the longest pause of the four weeks before`,
      "pay one yourself; tilld doctor says whether the chain is read, tilld payments list whether any are made"
    )
  ]
})

/** What is wrong by the ledger now. */
export const lookAtMoney = Effect.fn("Conditions.money")(function* (
  settings: SettingsShape,
  prices: Prices["Type"],
  reader: Db
) {
  const now = yield* Clock.currentTimeMillis
  const ofChains = Effect.forEach(
    settings.chains,
    (chain) => Effect.zipWith(ofWaiting(chain, reader, now), ofSilence(chain, reader, now), (...all) => all.flat()),
    { concurrency: 1 }
  )
  return [...(yield* ofUnaccounted(settings, prices, reader)), ...(yield* ofChains).flat()]
})
