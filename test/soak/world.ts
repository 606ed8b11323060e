import { Clock, Data, Duration, Effect, Random, Schedule } from "effect"
import { request } from "undici"
import type { Address, Hash } from "viem"
import type { ChainName } from "../../src/Domain/Chain.ts"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import type { LocalChain } from "../../src/Sandbox/LocalChain.ts"
import type { Receiver } from "../../src/Sandbox/Receiver.ts"
import type { Chains, Daemon } from "../lib/daemon.ts"
import { httpAgent } from "../lib/loopback.ts"
import type { Plan, Transfer } from "./plans.ts"

/** An order that tilld has acknowledged. */
export interface Order {
  readonly plan: Plan
  readonly payment: PaymentObject
}

/** A time that something took, with when it was measured; both in milliseconds. */
export interface Sample {
  readonly at: number
  readonly value: number
}

/** What the run has done so far. */
export class Book {
  readonly orders: Array<Order> = []
  readonly posts: Array<Sample> = []
  /** MiB of the process, by the number of each. */
  readonly memory: Array<Sample & { readonly life: number }> = []
  /** kB that are left of its heap after a collection. */
  readonly heaps: Array<Sample & { readonly life: number }> = []
  readonly bytes: Array<Sample> = []
  readonly problems: Array<string> = []
  /** Lines of all lives' logs. */
  readonly errors: Array<string> = []
  readonly counts = { reorgs: 0, restarts: 0, kills: 0, backups: 0, asked: 0, tries: 0 }
}

/** A chain of the run: its changes take turns, so that nothing is sent amid a reorg. */
export interface Node {
  readonly name: ChainName
  readonly chain: LocalChain
  readonly turn: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

export interface World {
  readonly nodes: ReadonlyMap<ChainName, Node>
  readonly receiver: Receiver
  readonly book: Book
  /** The daemon that runs at the moment, or ran last. */
  daemon: Daemon
}

class NoAnswer extends Data.TaggedError("NoAnswer")<{ readonly reason: string }> {}

export const makeNodes = (chains: Chains): Effect.Effect<World["nodes"]> =>
  Effect.map(
    Effect.forEach(chains, ([name, chain]) =>
      Effect.map(Effect.makeSemaphore(1), (turns): [ChainName, Node] => [
        name,
        { name, chain, turn: turns.withPermits(1) }
      ])
    ),
    (nodes) => new Map(nodes)
  )

export const nodeOf = ({ nodes }: World, name: string): Node => {
  const node = [...nodes.values()].find((each) => each.name === name)
  if (node === undefined) throw new Error(`there is no chain ${name}`)
  return node
}

/** Requests until a response comes: the daemon may be down. An idempotency key makes one payment of all tries. */
export const makePost = ({ book }: World, daemon: () => Daemon) =>
  Effect.map(
    httpAgent,
    (dispatcher) =>
      <A>(path: string, body: unknown, key: string) =>
        Effect.tryPromise({
          try: async (signal) => {
            book.counts.tries++
            const before = performance.now()
            const { url, key: apiKey } = daemon()
            const headers = { "x-api-key": apiKey, "content-type": "application/json", "idempotency-key": key }
            const options = { dispatcher, signal, method: "POST", headers, body: JSON.stringify(body) } as const
            const response = await request(`${url}${path}`, options)
            const text = await response.body.text()
            if (response.statusCode >= 300) throw new Error(`${response.statusCode} ${text}`)
            return { took: performance.now() - before, answer: JSON.parse(text) as A }
          },
          catch: (cause) => new NoAnswer({ reason: String(cause) })
        }).pipe(
          Effect.flatMap(({ answer, took }) =>
            Effect.map(Clock.currentTimeMillis, (at) => {
              book.posts.push({ at, value: took })
              return answer
            })
          ),
          Effect.timeoutFail({
            duration: "30 seconds",
            onTimeout: () => new NoAnswer({ reason: "no answer in 30 s" })
          }),
          Effect.retry(Schedule.spaced("500 millis").pipe(Schedule.upTo("2 minutes"))),
          Effect.tapError(({ reason }) => Effect.sync(() => book.problems.push(`POST ${path} ${key}: ${reason}`)))
        )
  )

/** What a transfer moves, and on which chain. */
export const moved = ({ chain, currency, amount }: PaymentObject, transfer: Transfer) => ({
  chain: transfer.chain ?? chain,
  currency: transfer.currency ?? currency,
  // A share is half of the amount. Both currencies that are sent in another's place have 18 decimals: any sum will do.
  amount: (BigInt(amount) * BigInt(transfer.share)) / 2n
})

const send = (world: World, payment: PaymentObject, transfer: Transfer) => {
  const { amount, chain: name, currency } = moved(payment, transfer)
  const { chain, turn } = nodeOf(world, name)
  const to = payment.address as Address
  return turn(
    currency === "ETH" ? chain.payNative({ to, amount }) : chain.payToken({ symbol: currency as "USDC", to, amount })
  )
}

const seconds = (from: number, to: number) =>
  Effect.flatMap(Random.nextRange(from, to), (value) => Effect.sleep(Duration.seconds(value)))

/** What a payer does with an order until nothing more comes. */
export const behave = (world: World, { payment, plan }: Order) =>
  Effect.gen(function* () {
    // By the chain's clock, which each reorg of the local node sets back: so far after the deadline that no reorg brings the
    // transfer before it again.
    if (plan.isLate) {
      const { chain } = nodeOf(world, payment.chain)
      yield* Effect.repeat(Effect.zipLeft(chain.head, Effect.sleep("1 second")), {
        until: ({ timestamp }) => timestamp * 1000 > Date.parse(payment.expiresAt) + 90_000
      })
    }
    for (const transfer of plan.transfers) {
      yield* seconds(1, 8)
      yield* send(world, payment, transfer)
    }
  })

/**
 * Replaces the last blocks, and sends what was in them again, as the network does. No deeper than what is confirmed yet.
 */
export const reorg = ({ chain, turn }: Node) =>
  turn(
    Effect.gen(function* () {
      const depth = 2
      const { number } = yield* chain.head
      const hashes = yield* Effect.forEach([number - 1, number], (at) =>
        Effect.map(
          chain.rpc<{ transactions: ReadonlyArray<Hash> }>("eth_getBlockByNumber", [`0x${at.toString(16)}`, false]),
          ({ transactions }) => transactions
        )
      )
      const raw = yield* Effect.forEach(hashes.flat(), chain.rawTransaction)
      // The end of the run must not take away what was paid.
      yield* Effect.uninterruptible(Effect.zipRight(chain.reorg(depth), Effect.forEach(raw, chain.sendRaw)))
    })
  )
