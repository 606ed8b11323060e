import { Duration, Redacted } from "effect"
import type { Rpc, RpcClient, RpcRequest } from "../../../src/Chains/rpc/Rpc.ts"
import { Dice } from "../../sim/Dice.ts"
import { Place } from "../../sim/Place.ts"
import { pay } from "../../sim/payWays.ts"
import { type ChainPlan, contractOf, plans } from "../../sim/plans.ts"
import { reasonOf, settle } from "../../sim/play.ts"
import type { SimProvider } from "../../sim/SimProvider.ts"
import type { Stage } from "../../sim/simulate.ts"
import type { World } from "../../sim/World.ts"
import { Violation } from "../../sim/watched.ts"
import { Hostile, truthOf } from "./Hostile.ts"
import { heapBytes } from "./heap.ts"
import type { Line } from "./Line.ts"
import { properly, send } from "./wire.ts"

const second = 1_000
/** Virtual time in which a watcher is asked; what it has not asked by then, it does not ask. */
const longest = 45 * 60 * second
/** Seconds that payments have. */
const expiresIn = 50 * 60
/** How often the honest provider has trouble, so that the other one serves. */
const trouble = 0.8

/** The providers' lines, and the client that reaches them. */
export interface Lines {
  readonly hostile: Line
  readonly honest: Line
  readonly rpc: Rpc["Type"]
}

/** A chain one of whose providers may have reported anything; both have kept all state. */
class HostilePlace extends Place {
  constructor(plan: ChainPlan, dice: Dice) {
    super(plan, dice, { latency: 0, stateDepth: Number.MAX_SAFE_INTEGER })
  }

  override get watched() {
    return { ...super.watched, isGarbled: () => true, isLiedAbout: () => true, areTimesWrong: () => true }
  }

  override get hasLied() {
    return true
  }
}

/** The outcome of one life of the watcher. */
export interface Played {
  /** What went wrong, if anything did. */
  readonly fault: string | undefined
  readonly hostile: Hostile
  /** Responses that the client took for garbage, and that health reported. */
  readonly garbage: number
  /** Bytes that each answer has left behind, while the watcher runs. */
  readonly leftBehind: number
  /** Payments that have their money, and wait for a person to say so. */
  readonly waiting: number
}

const createPayments = async (world: World, { chain, coin, tokens }: ChainPlan) => {
  const [token = "USDC"] = tokens
  const orders = [
    [token, 25_000_000n],
    coin === "ETH" ? (["ETH", 7_000_000_000_000_000n] as const) : ([token, 31_000_000n] as const),
    // It is not paid.
    [token, 99_000_000n]
  ] as const
  for (const [currency, amount] of orders) await world.create({ amount, currency, chain, expiresIn })
}

const knowledgeOf = (world: World, { chain, plan }: Place) => {
  const payments = world.ledger.payments()
  return {
    addresses: [contractOf(plan, "nobody"), ...payments.map(({ address }) => address)],
    contracts: plan.tokens.map((token) => contractOf(plan, token)),
    amounts: [1n, ...payments.map(({ amount }) => BigInt(amount))],
    blocks: Array.from({ length: 8 }, (_, i) => chain.at(chain.head.number - i) ?? chain.head)
  }
}

/** All payments but the last are paid in the middle of everything. */
const payDue = (world: World, place: Place, paid: Set<string>, share: number) => {
  const payments = world.ledger.payments()
  for (const [i, payment] of payments.slice(0, -1).entries()) {
    if (paid.has(payment.id) || share < (i + 1) / payments.length) continue
    paid.add(payment.id)
    const order = { way: "plain", part: "all", other: 0 } as const
    place.chain.submit(pay(`paid ${payment.id}`, payment, order, 0n, payments, [place.plan]).transaction)
  }
}

/** A story that the hostile provider's true answers tell from now on, each the same: money that never came, or less. */
const tellStory = (world: World, place: Place, dice: Dice) => {
  const payments = world.ledger.payments()
  const [payment, kind] = [dice.pick(payments), dice.pick(["invention", "invention", "multiplied", "hidden"] as const)]
  const target = kind === "invention" ? (payments.at(-1) ?? payment) : payment
  const name = `never was ${world.now}`
  const order = { way: "plain", part: "all", other: 0 } as const
  const { transaction } = pay(name, target, order, 0n, payments, [place.plan])
  place.tells(0, { kind, address: target.address, transaction, size: 2n, name }, world.now, world.now + longest)
}

/**
 * Paid payments are confirmed with their money, and unpaid ones are not. Returns how many payments wait for a person, and
 * have all their money: a balance that was too low, while no one else could be asked, has split it into amounts that no
 * transaction has.
 */
const checkMoney = ({ ledger }: World, paid: ReadonlySet<string>): number => {
  let waiting = 0
  for (const payment of ledger.payments()) {
    const { address, amount, id, status } = payment
    const all = ledger.receipts().filter((row) => row.address === address)
    const counted = all.filter(({ listed }) => listed !== null)
    const sum = counted.reduce((total, row) => total + BigInt(row.amount), 0n)
    const isWaiting = status === "detecting" && ledger.isUnattributed(payment)
    const isRight = paid.has(id)
      ? (status === "confirmed" || isWaiting) && sum === BigInt(amount)
      : (status === "expired" || (all.length > 0 && status === "failed")) && sum === 0n
    if (!isRight) {
      const rows = JSON.stringify(counted)
      throw new Violation(`a payment of ${paid.has(id) ? amount : "nothing"} is ${status} with ${sum}: ${rows}`)
    }
    if (isWaiting) waiting++
  }
  return waiting
}

/** Asked for what a node may have let go of, or not serve: nonsense is no more than that, and another provider is asked. */
const isOptional = ({ method, params }: RpcRequest): boolean =>
  method === "eth_getBlockByNumber" ? params[0] !== "latest" : method !== "eth_getLogs" && method !== "eth_chainId"

/** Returns whether the last response was garbage, which health must report at once. */
const checkHealth = async (world: World, { honest, hostile }: Lines): Promise<boolean> => {
  const { failure } = hostile
  if (failure?.error.reason !== "garbage" || hostile.isOpen || honest.isOpen || failure.calls.every(isOptional)) {
    return false
  }
  const [health] = (await world.health()) ?? []
  const reasons = [health?.reason, ...(health?.providers ?? []).map(({ reason }) => reason)]
  // Where several providers were tried for the same call, the last failure is reported. One of another chain stays that.
  const { host } = failure.error
  if ([`${host} failed (`, `${host} serves `].some((text) => reasons.some((reason) => reason?.includes(text))))
    return true
  throw new Violation(`${failure.error.message} is not in health: ${JSON.stringify(health)}`)
}

/** One life of the daemon's watcher between two providers, by its seed. */
export class Watching {
  readonly #lines: Lines
  readonly #dice: Dice
  readonly #place: HostilePlace
  readonly #world: World
  readonly #clients = new Map<SimProvider, RpcClient>()
  readonly #paid = new Set<string>()
  /** The honest provider has no trouble. */
  #isCalm = true
  readonly hostile: Hostile

  constructor(stage: Stage, lines: Lines, seed: string) {
    this.#lines = lines
    this.#dice = new Dice(`answers ${seed}`)
    this.#place = new HostilePlace(this.#dice.pick(plans), this.#dice)
    const reach = (provider: SimProvider, client: RpcClient) => {
      const line = provider === this.#place.providers[0] ? lines.hostile : lines.honest
      this.#clients.set(provider, client)
      return line.watched(lines.rpc.client(Redacted.make(line.url)))
    }
    const isBusy = () => lines.hostile.isBusy || lines.honest.isBusy
    // One provider may decide alone after this what none has denied.
    const patience = Duration.days(30)
    this.#world = stage.world(seed, [this.#place], { patience }, { reach, isBusy })
    const known = () => knowledgeOf(this.#world, this.#place)
    this.hostile = new Hostile(new Dice(`hostile ${seed}`), () => this.#clientOf(0), known)
    lines.hostile.answerer = (calls, response, pause) => this.hostile.answer(calls, response, pause)
    lines.honest.answerer = (calls, response, pause) => {
      const isThere = this.#isCalm || !this.#dice.chance(trouble)
      const body = isThere ? Buffer.from(JSON.stringify(truthOf(this.#clientOf(1), calls))) : Buffer.alloc(0)
      return send(response, isThere ? properly : { is: "whole", status: 503, headers: {} }, body, pause)
    }
  }

  #clientOf(index: number): RpcClient {
    const provider = this.#place.providers[index]
    const client = provider && this.#clients.get(provider)
    if (client === undefined) throw new Error("a chain has two providers")
    return client
  }

  /** Lets so many answers be made, and looks at the end of everything. */
  async play(count: number): Promise<Played> {
    const { hostile } = this
    let [garbage, heap, since] = [0, 0, 0]
    let [leftBehind, stories, waiting] = [0, 0, 0]
    let fault: string | undefined
    try {
      // Half of them make their answers before the chain's first head is known.
      hostile.isQuiet = this.#dice.chance(0.5)
      await this.#begin()
      const until = this.#world.now + longest
      while (hostile.made < count && this.#world.now < until) {
        await this.#world.next()
        if (await checkHealth(this.#world, this.#lines)) garbage++
        const share = hostile.made / count
        payDue(this.#world, this.#place, this.#paid, share)
        for (; stories < Math.floor(share * 4); stories++) tellStory(this.#world, this.#place, this.#dice)
        if (heap === 0 && hostile.made > count / 2) [heap, since] = [heapBytes(), hostile.made]
      }
      leftBehind = heap === 0 ? 0 : (heapBytes() - heap) / Math.max(1, hostile.made - since)
      hostile.isQuiet = true
      this.#isCalm = true
      payDue(this.#world, this.#place, this.#paid, 1)
      // To wait for the payments' end takes longer than all answers.
      await settle(this.#world, this.#dice.chance(0.8))
      waiting = checkMoney(this.#world, this.#paid)
    } catch (error) {
      fault = reasonOf(error)
    } finally {
      await this.#world.end()
    }
    return { fault, hostile, garbage, leftBehind, waiting }
  }

  async #begin(): Promise<void> {
    await this.#world.start()
    await createPayments(this.#world, this.#place.plan)
    for (let i = 0; i < 30 && this.#world.ledger.scans().length === 0; i++) await this.#world.pass(second)
    this.hostile.isQuiet = false
    this.#isCalm = false
  }
}
