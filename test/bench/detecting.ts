import { join } from "node:path"
import { Clock, Effect, Random, Schema } from "effect"
import type { ChainName } from "../../src/Domain/Chain.ts"
import type { PaymentCurrency } from "../../src/Domain/Currency.ts"
import { WebhookEvent } from "../../src/Domain/Event.ts"
import type { LocalChain } from "../../src/Sandbox/LocalChain.ts"
import { startReceiver } from "../../src/Sandbox/Receiver.ts"
import { post } from "./api.ts"
import { createKey, install, localChain, pollInterval, startDaemon, temporaryFolder } from "./daemon.ts"
import { type Figure, millis, quantile } from "./Figure.ts"

const payments = 40

const decodeEvent = Schema.decodeUnknownSync(Schema.parseJson(WebhookEvent))

interface Created {
  readonly id: string
  readonly address: `0x${string}`
}

const pay = (chain: LocalChain, currency: PaymentCurrency, { address }: Created) =>
  currency === "ETH"
    ? chain.payNative({ to: address, amount: 1_000n })
    : chain.payToken({ symbol: "USDC", to: address, amount: 1_000n })

/** From the moment in which a block is asked of the chain to the arrival of the event at a real HTTPS receiver. */
const measure = (name: ChainName, currency: PaymentCurrency) =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const caFile = join(folder, "ca.pem")
    const receiver = yield* startReceiver({ caFile })
    const chain = yield* localChain
    const installation = yield* install(chain, { extra_ca_file: caFile }, name)
    const { said: port } = yield* startDaemon(installation)
    const key = yield* createKey(installation)
    yield* post(port, key, "/v1/webhooks", {
      url: receiver.url,
      events: ["payment.detecting"],
      secret: `whsec_${"0".repeat(32)}`
    })

    const latencies: Array<number> = []
    for (let i = 0; i < payments; i++) {
      const asked = { merchantRef: `order-${i}`, amount: "1000", currency, chain: name }
      const created = yield* post<Created>(port, key, "/v1/payments", asked)
      yield* pay(chain, currency, created)
      // Anywhere between two looks at the chain, and not always just after one.
      yield* Effect.sleep(yield* Random.nextIntBetween(0, pollInterval))
      const minedAt = yield* Clock.currentTimeMillis
      yield* chain.mine()
      const { at, body } = yield* receiver.take
      const { data } = decodeEvent(body.toString("utf8"))
      if (data.id !== created.id) return yield* Effect.dieMessage(`an event of ${data.id} instead of ${created.id}`)
      latencies.push(at - minedAt)
    }
    const figure: Figure = {
      what: `block to webhook, ${currency} on ${name}, p99`,
      measured: `${payments} payments, p50 ${millis(quantile(latencies, 0.5))}`,
      beside: `a look at the chain every ${millis(pollInterval)}`,
      judged: quantile(latencies, 0.99),
      floor: { atMost: pollInterval + 100 },
      goal: { atMost: pollInterval + 20 },
      written: millis
    }
    return figure
  }).pipe(Effect.scoped)

/** Both ways in which a look at the chain finds money: a token's logs, and coins in full blocks, which Ethereum's are. */
export const detecting = Effect.all([measure("base", "USDC"), measure("ethereum", "ETH")], { concurrency: 1 })
