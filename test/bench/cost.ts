import { Effect } from "effect"
import { type ChainName, chainNames } from "../../src/Domain/Chain.ts"
import type { PaymentCurrency } from "../../src/Domain/Currency.ts"
import { presets } from "../../src/Settings/publicNetworks.ts"
import { merchant } from "../sim/Life.ts"
import { transaction, transferLog } from "../sim/transactions.ts"
import { count, type Figure } from "./Figure.ts"
import { source, unitsOf } from "./units.ts"
import { type ChainTraffic, epoch, type Traffic, withNetworks } from "./virtualNetworks.ts"

// What a day of watching asks of the providers.

const second = 1_000
const hour = 3_600 * second
const day = 24 * hour

/**
 * The first `hours` of a day with `perDay` payments, spread over it and over the chains; half in coin, nine of ten paid
 * after three minutes.
 */
const aDay = (perDay: number, hours: number): Promise<ReadonlyMap<ChainName, ChainTraffic>> =>
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
const millions = (units: number): string => `${(units / 1e6).toFixed(1)} million units in 30 days`

const times = (traffic: Traffic, factor: number) => ({
  calls: traffic.calls * factor,
  /** In 30 days, where this is a day. */
  units: unitsOf(traffic.methods) * factor * 30,
  batches: traffic.batches * factor,
  bytes: (traffic.sent + traffic.received) * factor
})
const callsOf = (methods: ReadonlyMap<string, number>): string =>
  [...methods]
    .sort(([, one], [, next]) => next - one)
    .map(([method, calls]) => `${method} ${count(calls)}`)
    .join(", ")
const written = ({ batches, bytes, calls, units }: ReturnType<typeof times>): string =>
  `${count(Math.round(calls))} calls in ${count(Math.round(batches))} requests, ${mega(bytes)}, ${millions(units)}`

const figures = async (
  perDay: number,
  hours: number,
  units: Pick<Figure, "floor" | "goal">,
  calls: Pick<Figure, "floor"> = {}
): Promise<ReadonlyArray<Figure>> => {
  const traffic = await aDay(perDay, hours)
  const factor = 24 / hours
  const seen = hours === 24 ? "" : `, from its first ${hours} hours`
  const all = [...traffic.values()].flatMap(({ other, serving }) => [serving, other]).map((one) => times(one, factor))
  const what = `${count(perDay)} payments`
  return [
    ...Array.from(traffic, ([name, { other, serving }]): ReadonlyArray<Figure> => {
      const figure = (which: string, one: Traffic): Figure => ({
        what: `${what}, ${name}, ${which}`,
        measured: `${callsOf(one.methods)}${seen}`,
        judged: 0,
        written: () => written(times(one, factor))
      })
      return [figure("serving", serving), figure("other", other)]
    }).flat(),
    {
      what: `${what}, five chains`,
      measured: "a free plan of 3,000,000 requests a month has 100,000 a day",
      judged: all.reduce((sum, { calls }) => sum + calls, 0),
      ...calls,
      written: (calls) => `${count(Math.round(calls))} calls a day`
    },
    {
      what: `${what}, units`,
      measured: `both providers of five chains together, by the weights of ${source}`,
      judged: all.reduce((sum, { units }) => sum + units, 0),
      ...units,
      written: millions
    }
  ]
}

/** Calls, units and bytes of a day, with few payments and with many; of the latter the first hours only, unless all are asked for. */
export const cost = (hours: number) =>
  Effect.promise(async () => [
    ...(await figures(20, 24, { floor: { atMost: 26e6 }, goal: { atMost: 12e6 } }, { floor: { atMost: 100_000 } })),
    ...(await figures(10_000, hours, { floor: { atMost: 650e6 }, goal: { atMost: 400e6 } }))
  ])
