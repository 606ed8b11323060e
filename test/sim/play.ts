import { Violation } from "./Ledger.ts"
import { firstHeight, type Place } from "./Place.ts"
import { pay, type Sent, spend } from "./payWays.ts"
import { settleGrace } from "./plans.ts"
import type { Action, Step } from "./steps.ts"
import type { World } from "./World.ts"

const second = 1_000
/** After which blocks that are final have been read twice, whoever waits. */
const longestSecondPass = 11 * 60 * second
const ownUrl = "https://192.0.1.2/own"

const placeAt = ({ places }: World, index: number): Place => {
  const found = places[index % places.length]
  if (found === undefined) throw new Error("there is no chain")
  return found
}

const create = async (
  world: World,
  { amount, chain, currency, expiresIn, ownUrl: own }: Action & { does: "create" }
) => {
  const place = world.places.find(({ plan }) => plan.chain === chain)
  const units = BigInt(amount) * (currency === place?.plan.coin ? 10n ** 12n : 1n)
  await world.create({ amount: units, currency, chain, expiresIn, ...(own ? { webhookUrl: ownUrl } : {}) })
}

/** What was sent plainly to each payment so far: what is left of it is what somebody who pays the rest pays. */
type Paid = Map<string, bigint>

const send = (world: World, step: Action & { does: "pay" | "spend" }, name: string, paid: Paid): void => {
  const payments = world.ledger.payments()
  const payment = payments[step.payment % Math.max(1, payments.length)]
  if (payment === undefined) return
  const before = paid.get(payment.id) ?? 0n
  const sent =
    step.does === "pay"
      ? pay(
          name,
          payment,
          step,
          before,
          payments,
          world.places.map(({ plan }) => plan)
        )
      : spend(name, payment, world.ledger.balanceOf(payment.chain, payment.address), step.all)
  if (sent === undefined) return
  if (step.does === "pay" && step.way === "plain") paid.set(payment.id, before + BigInt(payment.amount) / 2n)
  const submit = (one: Sent) => world.places.find(({ plan }) => plan.chain === one.chain)?.chain.submit(one.transaction)
  submit(sent)
  if (step.does !== "pay" || step.way !== "collected") return
  // The merchant takes it away at once: in the same block.
  const after = world.ledger.balanceOf(payment.chain, payment.address) + sent.transaction.value
  const taken = spend(`${name} collected`, payment, after, step.other % 2 === 0)
  if (taken !== undefined) submit(taken)
}

const act = async (world: World, step: Action, name: string, paid: Paid): Promise<void> => {
  switch (step.does) {
    case "create":
      return create(world, step)
    case "crash":
      if (step.when === "now") return world.restart(step.down * second)
      return world.crashAt(step.when, step.commits, step.down * second)
    case "receive":
      world.receiver.answer = step.answer
      return
    case "pay":
    case "spend":
      return send(world, step, name, paid)
    case "reorg": {
      const { chain } = placeAt(world, step.chain)
      // Nothing is read below the first head that the daemon has seen.
      const depth = Math.min(step.depth, chain.head.number - firstHeight)
      return chain.reorg(depth, step.grows, world.now, (_, n) => step.fates[n % step.fates.length] ?? "again")
    }
    case "mine":
      return placeAt(world, step.chain).chain.mineMany(step.blocks, world.now)
    case "break": {
      const until = world.now + step.seconds * second
      return placeAt(world, step.chain).breaks(step.provider, step.kind, step.size, world.now, until)
    }
    case "wait":
      return
  }
}

/**
 * Goes the steps, and then lets everything settle: in the end the daemon must know all, have decided all, and have told
 * all. Throws a `Violation` where it does not.
 */
export const play = async (world: World, steps: ReadonlyArray<Step>): Promise<void> => {
  await world.start()
  const paid: Paid = new Map()
  for (const [i, step] of steps.entries()) {
    await world.pass(step.after)
    await act(world, step, `step ${i}`, paid)
  }
  await world.heal()
  await world.confirmAll()
  // What was left out is found by the second pass, which takes its time where nobody waits.
  const isMissing = world.places.some(({ providers }) => providers.some(({ withheld }) => withheld.size > 0))
  world.ledger.checkQuiet(!isMissing)

  const last = Math.max(world.now, ...world.ledger.payments().map((payment) => payment.expires_at))
  const over = last + settleGrace + 12 * second
  // Half of them are down when their payments' time is over.
  if (steps.length % 2 === 0) await world.restart(over - world.now)
  else await world.passTo(over)
  // Blocks come by themselves for a while, so that every chain has read one beyond the time.
  await world.pass(8 * second)
  await world.confirmAll(isMissing ? longestSecondPass : 0)
  world.ledger.checkQuiet(true)
  world.ledger.checkEnd()
  await world.finish()
}

/** Why a run fails, for people. */
export const reasonOf = (error: unknown): string =>
  error instanceof Violation ? error.message : error instanceof Error ? (error.stack ?? error.message) : String(error)
