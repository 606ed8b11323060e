import { firstHeight, type Place } from "./Place.ts"
import { amountOf, dustOf, pay, type Sent, spend } from "./payWays.ts"
import { settleGrace } from "./plans.ts"
import type { ExceptionRow, PaymentRow } from "./rows.ts"
import { checkEnd, checkLateCoins, checkQuiet, checkReported, checkTimes, isInventionKnown } from "./settled.ts"
import type { Action, Step } from "./steps.ts"
import type { World } from "./World.ts"
import { Violation } from "./watched.ts"

const second = 1_000
/** After which final blocks have been read twice, even if no one waits. */
const longestSecondPass = 31 * 60 * second
const ownUrl = "https://192.0.1.2/own"

const placeAt = ({ places }: World, index: number): Place => {
  const found = places[index % places.length]
  if (found === undefined) throw new Error("there is no chain")
  return found
}

const create = async (
  world: World,
  { amount, chain, currency, expiresIn, name, ownUrl: own }: Action & { does: "create" }
) => {
  // The time shown to a customer then would be wrong: such a payment would last for hours.
  if (world.skew > 0) return
  const place = world.places.find(({ plan }) => plan.chain === chain)
  const units = BigInt(amount) * (currency === place?.plan.coin ? 10n ** 12n : 1n)
  const payment = await world.create({
    amount: units,
    currency,
    chain,
    expiresIn,
    ...(own ? { webhookUrl: ownUrl } : {})
  })
  if (name !== undefined && payment !== undefined) world.names.set(name, payment.id)
}

/** What was sent plainly to each payment so far: what is left of it is what someone who pays the rest pays. */
type Paid = Map<string, bigint>

/** The payment that a step is about. One that is lost with the newest files is remembered here. */
const paymentOf = (world: World, payments: ReadonlyArray<PaymentRow>, of: string | undefined, place: number) => {
  if (of === undefined) return payments[place % Math.max(1, payments.length)]
  const id = world.names.get(of)
  return payments.find((one) => one.id === id) ?? world.lost.find((one) => one.id === id)
}

const send = (world: World, step: Action & { does: "pay" | "spend" }, name: string, paid: Paid): void => {
  const payments = world.ledger.payments()
  const payment = paymentOf(world, payments, step.of, step.payment)
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

/** What a provider shows of a transaction that it invents, in base units what it makes of a balance. */
const lie = (world: World, step: Action & { does: "lie" }, name: string): void => {
  const place = placeAt(world, step.chain)
  const payments = world.ledger.payments()
  const payment = step.of === undefined ? undefined : paymentOf(world, payments, step.of, 0)
  const isHere = payment !== undefined && (payment.chain === place.plan.chain || step.way === "otherChain")
  const amount = isHere ? amountOf(step.part, BigInt(payment.amount), 0n) : 0n
  const plans = world.places.map(({ plan }) => plan)
  const sent =
    step.kind === "invention" && isHere
      ? pay(`${name} never was`, payment, { ...step, other: step.size }, 0n, payments, plans)
      : undefined
  const order = {
    kind: step.kind,
    address: isHere ? payment.address : undefined,
    transaction: sent?.transaction,
    size: step.kind === "shifted" ? amount * BigInt(step.size) : BigInt(step.size),
    name
  }
  place.tells(step.provider, order, world.now, world.now + step.seconds * second)
}

/** As many as fit in one transaction: one log, or one transfer, each. */
const flood = (world: World, step: Action & { does: "flood" }, name: string): void => {
  const { chain, plan } = placeAt(world, step.chain)
  const payment = step.of === undefined ? undefined : paymentOf(world, world.ledger.payments(), step.of, 0)
  if (step.of !== undefined && payment?.chain !== plan.chain) return
  chain.submit(...dustOf(name, plan, payment, step.transfers))
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
    case "cancel": {
      const payment = paymentOf(world, world.ledger.payments(), step.of, step.payment)
      return payment && world.cancel(payment.id)
    }
    case "refund": {
      const payment = paymentOf(world, world.ledger.payments(), step.of, step.payment)
      return payment && world.refund(payment.id, amountOf(step.part, BigInt(payment.amount), 0n))
    }
    case "accept": {
      const payment = paymentOf(world, world.ledger.payments(), step.of, step.payment)
      return payment && world.accept(payment.id)
    }
    case "decide": {
      const payment = paymentOf(world, world.ledger.payments(), step.of, step.payment)
      const isOpen = ({ address, outcome }: ExceptionRow) => outcome === null && address === payment?.address
      const open = world.ledger.exceptions().filter(isOpen)
      const one = open[step.exception % Math.max(1, open.length)]
      if (one === undefined) return
      if (step.as === "accepted") return world.acceptException(one)
      return world.refundException(one, amountOf(step.part, BigInt(one.amount), 0n))
    }
    case "reorg": {
      const { chain } = placeAt(world, step.chain)
      // Nothing is read below the first head that the daemon has seen.
      const depth = Math.min(step.depth, chain.head.number - firstHeight)
      return chain.reorg(depth, step.grows, world.now, (_, n) => step.fates[n % step.fates.length] ?? "again")
    }
    case "lie":
      return lie(world, step, name)
    case "flood":
      return flood(world, step, name)
    case "clock":
      return world.setClock(step.hours * 3_600 * second, world.now + step.seconds * second)
    case "copy":
      return world.copy()
    case "restore":
      // The copy may lack the denial of what the remaining provider has invented.
      if (world.places.some(({ goneUntil }) => goneUntil > world.now)) return
      return world.restore(step.elsewhere, step.down * second)
    case "mine":
      return placeAt(world, step.chain).chain.mineMany(step.blocks, world.now)
    case "break": {
      const until = world.now + step.seconds * second
      const place = placeAt(world, step.chain)
      // The remaining provider may decide alone what none has denied, also by its own block times.
      const isLeftSafely = isInventionKnown(world.ledger, place.plan.chain, world) && !place.watched.areTimesWrong()
      if (step.kind === "gone" && !isLeftSafely) return
      return place.breaks(step.provider, step.kind, step.size, world.now, until)
    }
    case "look": {
      const payment = paymentOf(world, world.ledger.payments(), step.of, 0)
      const since = world.now - step.ago * second
      // A start begins all intervals again.
      if (payment !== undefined && world.begun <= since) checkLateCoins(world.ledger, payment, since, world.now)
      return
    }
    case "given":
    case "wait":
      return
  }
}

/**
 * Runs the steps, and then lets everything settle: in the end the daemon must know, have decided, and have reported
 * everything. Throws a `Violation` otherwise.
 */
export const play = async (world: World, steps: ReadonlyArray<Step>): Promise<void> => {
  await world.start()
  const paid: Paid = new Map()
  for (const [i, step] of steps.entries()) {
    await world.pass(step.after)
    await act(world, step, `step ${i}`, paid)
  }
  // Half of them are down when their payments' time is over.
  await settle(world, steps.length % 2 === 0)
}

/**
 * Lets everything settle and looks at the end. Throws a `Violation` where it is not as it should be.
 *
 * @param isDown the daemon is down when its payments' time is over
 */
export const settle = async (world: World, isDown: boolean): Promise<void> => {
  const { ledger } = world
  await world.heal()
  // What was left out is found by the second pass, which takes its time where no one waits.
  const isMissing = world.places.some(({ hasLied }) => hasLied)
  const checkNow = () => checkQuiet(ledger, !isMissing)
  await world.confirmAll(checkNow)
  checkNow()

  const last = Math.max(world.now, ...world.ledger.payments().map((payment) => payment.expires_at))
  const over = last + settleGrace + 12 * second
  if (isDown) await world.restart(over - world.now)
  else await world.passTo(over)
  // Blocks come by themselves for a while, so that every chain has read one beyond the time.
  await world.pass(8 * second)
  const checkAll = () => {
    checkQuiet(ledger, true)
    checkEnd(ledger, world.lost)
    if (!isMissing) checkReported(ledger)
  }
  await world.confirmAll(checkAll, isMissing ? longestSecondPass : 0)
  checkAll()
  if (!world.wasBehind) checkTimes(ledger, world.hurried)
  await world.finish()
}

/** Why a run fails, as text. */
export const reasonOf = (error: unknown): string =>
  error instanceof Violation ? error.message : error instanceof Error ? (error.stack ?? error.message) : String(error)
