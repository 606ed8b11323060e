import type { ServerResponse } from "node:http"
import { Effect, Either } from "effect"
import type { RpcClient } from "../../../src/Chains/rpc/Rpc.ts"
import type { Dice } from "../../sim/Dice.ts"
import { type Answered, misaddressed } from "./envelopes.ts"
import type { Asked } from "./Line.ts"
import { type Knowledge, lied } from "./lies.ts"
import { anything, mutated } from "./mutations.ts"
import { garbled, oversized } from "./texts.ts"
import { fault, type Manner, type Pause, properly, send } from "./wire.ts"

/** The kinds of responses, and their share in percent. */
const kinds = { value: 34, lie: 16, envelope: 14, text: 10, fault: 12, size: 10, nothing: 4 } as const
export type Kind = keyof typeof kinds

/** Calls that come seldom: an answer is kept for them, for so many batches. */
const targets = [
  "eth_getLogs",
  "eth_getTransactionReceipt",
  "eth_getBlockReceipts",
  "eth_getTransactionByHash",
  "eth_getBalance",
  "eth_call",
  "debug_traceTransaction",
  "eth_getTransactionCount",
  "eth_getBlockByHash"
]
const patience = 4

/** The JSON-RPC response of an honest node. */
export const truthOf = (node: RpcClient, calls: ReadonlyArray<Asked>): ReadonlyArray<Answered> =>
  Effect.runSync(node.sendEach(calls)).map((reply, i) => {
    const envelope = { jsonrpc: "2.0", id: calls[i]?.id }
    return Either.isRight(reply)
      ? { ...envelope, result: reply.right }
      : { ...envelope, error: { code: -32_000, message: reply.left.detail } }
  })

/** A provider that derives its responses from true ones, or invents them. They depend only on its dice. */
export class Hostile {
  /** It tells the truth. */
  isQuiet = false
  /** Answers that it has made. */
  made = 0
  /** How many it made of a kind, and to a method. */
  readonly counts = new Map<string, number>()
  /** The last ones, for those who look for what went wrong. */
  readonly last: Array<string> = []
  readonly #dice: Dice
  readonly #node: () => RpcClient
  readonly #known: () => Knowledge
  #target: string | undefined
  #waits = 0

  constructor(dice: Dice, node: () => RpcClient, known: () => Knowledge) {
    this.#dice = dice
    this.#node = node
    this.#known = known
  }

  answer(calls: ReadonlyArray<Asked>, response: ServerResponse, pause: Pause): Promise<void> {
    const truth = truthOf(this.#node(), calls)
    if (this.isQuiet || !this.#isTurn(calls)) return send(response, properly, Buffer.from(JSON.stringify(truth)), pause)
    const at = Math.max(
      0,
      calls.findIndex(({ method }) => method === this.#target)
    )
    const kind = this.#dice.weighted<Kind>(kinds)
    this.#count(kind)
    this.#count(calls[at]?.method ?? "nothing")
    const [manner, body] = this.#make(kind, calls, truth, at)
    this.#tell(kind, calls, manner, body)
    this.made++
    this.#target = this.#dice.chance(0.3) ? this.#dice.pick(targets) : undefined
    this.#waits = 0
    return send(response, manner, body, pause)
  }

  /** Whether this batch is what the next answer was kept for. */
  #isTurn(calls: ReadonlyArray<Asked>): boolean {
    this.#waits++
    const target = this.#target
    return target === undefined || this.#waits > patience || calls.some(({ method }) => method === target)
  }

  #make(
    kind: Kind,
    calls: ReadonlyArray<Asked>,
    truth: ReadonlyArray<Answered>,
    at: number
  ): readonly [manner: Manner, body: Buffer] {
    const dice = this.#dice
    const text = () => JSON.stringify(truth)
    const json = (value: unknown) => [properly, Buffer.from(JSON.stringify(value) ?? "")] as const
    const [call, one] = [calls[at], truth[at]]
    const changed = (): ReadonlyArray<Answered> =>
      one === undefined ? truth : truth.with(at, { ...one, result: mutated(dice, one.result ?? null) })
    switch (kind) {
      case "value":
        return json(dice.chance(0.7) ? changed() : mutated(dice, dice.chance(0.2) ? changed() : truth))
      case "lie": {
        const result = call === undefined ? null : lied(dice, call, one?.result ?? null, this.#known())
        return json(truth.with(at, { id: call?.id, result }))
      }
      case "envelope":
        return json(misaddressed(dice, dice.chance(0.2) ? changed() : truth))
      case "text":
        return [properly, garbled(dice, text())]
      case "size":
        return [properly, oversized(dice, text())]
      case "nothing":
        return json(dice.chance(0.5) ? anything(dice, 6) : calls.map(({ id }) => ({ id, result: anything(dice, 5) })))
      case "fault":
        return fault(dice, dice.chance(0.3) ? Buffer.from(JSON.stringify(changed())) : Buffer.from(text()))
    }
  }

  #count(name: string): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1)
  }

  #tell(kind: Kind, calls: ReadonlyArray<Asked>, manner: Manner, body: Buffer): void {
    const asked = calls.map(({ method, params }) => `${method}(${JSON.stringify(params).slice(1, 120)})`).join(" ")
    const { is } = manner
    this.last.push(`${this.made} ${kind} ${is} to ${asked.slice(0, 400)}: ${body.toString("latin1").slice(0, 600)}`)
    if (this.last.length > 5) this.last.shift()
  }
}
