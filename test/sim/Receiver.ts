import { Clock, Effect } from "effect"
import type { AttemptOutcome, DeliveryRequest } from "../../src/Webhooks/transport/DeliveryClient.ts"
import type { DeliveryRow } from "./rows.ts"
import { Violation } from "./watched.ts"

interface Arrival {
  readonly url: string
  readonly id: string
  readonly body: string
  readonly isTaken: boolean
}

// A second detecting follows a reorg that removed all money; a confirmed payment can be undone by one.
const legalOrder = /^created( detecting)*( expired| failed| detecting confirmed( failed)?)?$/
// A person confirms it with whatever has come, and with what came after its end, or after a reorg.
const legalOrderOfDecided = /^created( detecting)*( expired| failed)?( confirmed( failed)?)*$/

/**
 * What one id always says. After a restore the daemon looks at other times: an event that has its id again may differ in its
 * times, in what had come by then where the chain alone decided, and in the payment and other exceptions beside an exception.
 */
const contentOf = (body: string): string => {
  const { data, event, exception } = JSON.parse(body) as Readonly<Record<string, Readonly<Record<string, unknown>>>>
  const { amount, amountReceived, failureReason, id, status, txHash } = data ?? {}
  const isPaid = status === "confirmed" && Number(amountReceived) >= Number(amount)
  const isDecided = !isPaid && (status === "confirmed" || ["cancelled", "reorged"].includes(`${failureReason}`))
  const said = exception ?? { id, failureReason, ...(isDecided ? { amountReceived, txHash } : { isPaid }) }
  return `${event} ${JSON.stringify(said, (key, value) => (key.endsWith("At") ? undefined : value))}`
}

/** The merchant's side: takes webhooks, or does not, and remembers each. */
export class Receiver {
  answer: "works" | "fails" | "hangs" = "works"
  #arrivals: Array<Arrival> = []
  /** By the event's id, what it said, also of events that a restore has taken from the database. */
  readonly #contents = new Map<string, string>()
  #contradiction: string | undefined

  readonly take = ({ body, url }: DeliveryRequest): Effect.Effect<AttemptOutcome> =>
    Effect.suspend((): Effect.Effect<AttemptOutcome> => {
      const text = Buffer.from(body).toString("utf8")
      const { id } = JSON.parse(text) as { readonly id: string }
      const content = contentOf(text)
      const before = this.#contents.get(id) ?? content
      this.#contents.set(id, before)
      if (before !== content) this.#contradiction ??= `one event id has two contents: ${before} and ${content}`
      this.#arrivals.push({ url, id, body: text, isTaken: this.answer === "works" })
      if (this.answer === "hangs") return Effect.as(Clock.sleep("30 seconds"), { error: "timeout" })
      return Effect.succeed({ status: this.answer === "works" ? 200 : 500 })
    })

  /** The database is an older one again: what came that it knows nothing of is forgotten. */
  restored(rows: ReadonlyArray<DeliveryRow>): void {
    const known = new Set(rows.map(({ body, id, url }) => `${id} ${url} ${body}`))
    this.#arrivals = this.#arrivals.filter(({ body, id, url }) => known.has(`${id} ${url} ${body}`))
  }

  /** Every event was delivered, byte for byte as it is stored, and each payment's in their order. */
  check(rows: ReadonlyArray<DeliveryRow>, decided: ReadonlySet<string>): void {
    if (this.#contradiction !== undefined) throw new Violation(this.#contradiction)
    for (const { body, id, kind, url } of rows) {
      const arrivals = this.#arrivals.filter((arrival) => arrival.id === id && arrival.url === url)
      if (!arrivals.some(({ isTaken }) => isTaken)) throw new Violation(`${kind} was never delivered to ${url}`)
      if (arrivals.some((arrival) => arrival.body !== body)) throw new Violation(`${kind} was sent in other bytes`)
    }
    const known = new Set(rows.map(({ id }) => id))
    const stray = this.#arrivals.find(({ id }) => !known.has(id))
    if (stray !== undefined) throw new Violation(`an event that is not stored was sent: ${stray.body}`)
    for (const id of new Set(rows.map((row) => row.payment_id))) this.#checkOrder(rows, id, decided.has(id))
  }

  #checkOrder(rows: ReadonlyArray<DeliveryRow>, payment: string, isDecided: boolean): void {
    const own = rows.filter((row) => row.payment_id === payment)
    const ofStatus = own.filter(({ kind }) => kind !== "payment.updated" && kind !== "payment.exception")
    const kinds = [...new Map(ofStatus.map(({ id, kind }) => [id, kind.slice("payment.".length)])).values()].join(" ")
    if (!(isDecided ? legalOrderOfDecided : legalOrder).test(kinds))
      throw new Violation(`a payment's events are ${kinds}`)
    for (const url of new Set(own.map((row) => row.url))) {
      const stored = own.filter((row) => row.url === url).map(({ id }) => id)
      const first = [
        ...new Set(this.#arrivals.filter((one) => one.url === url && stored.includes(one.id)).map(({ id }) => id))
      ]
      if (first.join() !== stored.join())
        throw new Violation(`first attempts to ${url} came in another order: ${kinds}`)
    }
  }
}
