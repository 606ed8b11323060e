import { afterAll, beforeAll, expect } from "vitest"
import type { ChainName } from "../../src/Domain/Chain.ts"
import type { PaymentCurrency } from "../../src/Domain/Currency.ts"
import { AccountId } from "../../src/Domain/Ids.ts"
import { Dice } from "../sim/Dice.ts"
import { Place } from "../sim/Place.ts"
import { planOf } from "../sim/payWays.ts"
import { contractOf } from "../sim/plans.ts"
import { Stage } from "../sim/simulate.ts"
import { type Transaction, transaction, transferLog } from "../sim/transactions.ts"
import type { World } from "../sim/World.ts"

export const second = 1_000
export const minute = 60 * second

/** A stage for the tests of a file, and scenes on it: tests on these chains, which end with everything read and right. */
export const onStage = () => {
  let stage: Stage
  beforeAll(async () => {
    stage = await Stage.make()
  })
  afterAll(() => stage.close())
  return (chains: ReadonlyArray<ChainName>, test: (world: World) => Promise<void>) => async () => {
    const dice = new Dice("reports")
    const traits = { latency: 0, traces: true, overrides: true }
    const world = stage.world(
      "reports",
      chains.map((chain) => new Place(planOf(chain), dice, traits))
    )
    try {
      await world.start()
      await test(world)
      await world.heal()
      await world.confirmAll()
      expect(world.ledger.isCaughtUp()).toBe(true)
    } finally {
      await world.end()
    }
  }
}

export const placeOf = (world: World, chain: ChainName): Place => {
  const place = world.places.find(({ plan }) => plan.chain === chain)
  if (place === undefined) throw new Error(`the scene is without ${chain}`)
  return place
}

/** Asks for 1,000 base units, and returns the address. */
export const ask = async (
  world: World,
  chain: ChainName,
  currency: PaymentCurrency,
  over: { readonly account?: string; readonly expiresIn?: number } = {}
) => {
  const owner = { account: AccountId.make(over.account ?? "default"), mode: "test" } as const
  const payment = await world.create({ amount: 1_000n, currency, chain, expiresIn: over.expiresIn ?? 60 }, owner)
  if (payment === undefined) throw new Error("the daemon is dead")
  return payment.address.toLowerCase()
}

let sent = 0

export const send = (world: World, chain: ChainName, over: Partial<Transaction>): Transaction => {
  const made = transaction(`report ${sent++}`, over)
  placeOf(world, chain).chain.submit(made)
  return made
}

const usdc = (chain: ChainName): string => contractOf(planOf(chain), "USDC")

export const logs = (
  chain: ChainName,
  ...pays: ReadonlyArray<readonly [to: string, value: bigint]>
): Partial<Transaction> => ({
  to: usdc(chain),
  logs: pays.map(([to, value]) => transferLog(usdc(chain), to, value))
})

export const payments = (world: World) =>
  world.ledger
    .payments()
    .map(({ amount_received, failure_reason, status }) =>
      [status, failure_reason, amount_received].filter((part) => part !== null).join(" ")
    )

export const exceptions = (world: World) =>
  world.ledger.exceptions().map(({ amount, currency, kind }) => `${kind} ${amount} ${currency}`)

/** Enough blocks for everything that has been sent, read and decided. */
export const confirm = async (world: World) => {
  await world.pass(15 * second)
  await world.confirmAll()
}
