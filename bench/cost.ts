import { Effect } from "effect"
import { type ChainName, chainNames } from "../src/Domain/Chain.ts"
import type { PaymentCurrency } from "../src/Domain/Currency.ts"
import { presets } from "../src/Settings/presets.ts"
import { merchant } from "../test/sim/Life.ts"
import { transaction, transferLog } from "../test/sim/transactions.ts"
import { type Bound, count, type Figure } from "./Figure.ts"
import { epoch, type Traffic, withNetworks } from "./virtualNetworks.ts"

// What a day of watching asks of the providers.

const second = 1_000
const hour = 3_600 * second
const day = 24 * hour

/**
 * The first `hours` of a day with `perDay` payments, spread over it and over the chains; half in coin, nine of ten paid
 * after three minutes.
 */
const aDay = (perDay: number, hours: number): Promise<ReadonlyMap<ChainName, Traffic>> =>
  withNetworks(
    () => {},
    async ({ chainOf, database, life, traffic }) => {
      const paying: Array<{ readonly at: number; readonly pay: () => void }> = []
      const passTo = async (until: number) => {
        while (paying[0] !== undefined && paying[0].at <= until) {
          const next = paying.shift()
          await life.time.passTo(next?.at ?? until)
          next?.pay()
        }
        await life.time.passTo(until)
      }
      const payments = Math.floor((perDay * hours) / 24)
      for (let i = 0; i < payments; i++) {
        await passTo(epoch + Math.floor(((i + 0.5) * day) / perDay))
        const chain = chainNames[i % chainNames.length] ?? "base"
        const currency: PaymentCurrency = i % 2 === 0 && chain !== "polygon" ? "ETH" : "USDC"
        const payment = await life.create(
          {
            merchantRef: `order-${i}`,
            amount: 1_000_000n,
            currency,
            chain,
            expiresIn: 3_600,
            metadata: "{}"
          },
          merchant
        )
        if (payment === undefined || i % 10 === 9) continue
        const to = payment.address.toLowerCase()
        const contract = presets.live[chain].tokens.USDC?.toLowerCase() ?? ""
        const what =
          currency === "ETH"
            ? { to, value: 1_000_000n }
            : { to: contract, logs: [transferLog(contract, to, 1_000_000n)] }
        paying.push({
          at: life.time.now + 3 * 60 * second,
          pay: () => chainOf(chain).submit(transaction(`payment ${i}`, what))
        })
      }
      await passTo(epoch + hours * hour)
      const open = database.prepare("SELECT count(*) FROM payments WHERE status = 'confirmed'").pluck().get() as number
      // The last ones are still on their way.
      if (open < payments * 0.85 - 20) throw new Error(`only ${open} of ${payments} payments are confirmed`)
      return traffic
    }
  )

const mega = (bytes: number): string => `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`
const callsADay = (value: number): string => `${count(Math.round(value))} calls a day`

const figures = async (perDay: number, hours: number, floor?: Bound): Promise<ReadonlyArray<Figure>> => {
  const traffic = await aDay(perDay, hours)
  const times = 24 / hours
  const seen = hours === 24 ? "" : `, from its first ${hours} hours`
  const total = [...traffic.values()].reduce((sum, one) => sum + one.calls, 0)
  return [
    ...Array.from(
      traffic,
      ([name, { batches, calls, received, sent }]): Figure => ({
        what: `${count(perDay)} payments, ${name}`,
        measured: `${count(batches * times)} requests, ${mega(sent * times)} sent, ${mega(received * times)} received${seen}`,
        judged: calls * times,
        written: callsADay
      })
    ),
    {
      what: `${count(perDay)} payments, five chains`,
      measured: "a free plan of 3,000,000 requests a month has 100,000 a day",
      judged: total * times,
      ...(floor === undefined ? {} : { floor }),
      written: callsADay
    }
  ]
}

/** Calls and bytes of a day, with few payments and with many; of the latter the first hours only, unless all are asked for. */
export const cost = (hours: number) =>
  Effect.promise(async () => [...(await figures(20, 24, { atMost: 100_000 })), ...(await figures(10_000, hours))])
