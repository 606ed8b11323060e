import { join } from "node:path"
import { NodeFileSystem } from "@effect/platform-node"
import { Effect, Queue } from "effect"
import { type Agent, request } from "undici"
import type { Address } from "viem"
import { StatusEventKind } from "../../src/Domain/Event.ts"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import { makeAuthority } from "../../src/Sandbox/Authority.ts"
import type { LocalChain } from "../../src/Sandbox/LocalChain.ts"
import { type Receiver, startReceiver } from "../../src/Sandbox/Receiver.ts"
import { createKey, type Installation, install, localChain } from "../bench/daemon.ts"
import { httpAgent } from "../lib/loopback.ts"
import { type Running, startTilld, tilldJson } from "../lib/processes.ts"
import { temporaryFolder } from "../lib/store.ts"

/** The paths of webhooks: of a payment's own URL, and of the registered endpoint. */
export const paths = { own: "/own", endpoint: "/endpoint" } as const

/** A merchant: a chain, a receiver, and what a daemon needs to start, again and again. */
export interface Shop {
  readonly installation: Installation
  readonly chain: LocalChain
  readonly receiver: Receiver
  readonly post: ReturnType<typeof poster>
  /** What signs at each path. */
  readonly secrets: Readonly<Record<string, string>>
}

const amount = 25_000_000n

const startDaemon = ({ config, env }: Installation, more: Readonly<Record<string, string>> = {}) =>
  startTilld(["serve", "--config", config], {
    env: { ...env, TILLD_CHAINS__BASE__TEST__POLL_INTERVAL: "100 millis", ...more }
  })

/** Starts a daemon without waiting for it. `env`: only for this life. */
export const start = ({ installation }: Pick<Shop, "installation">, env?: Readonly<Record<string, string>>) =>
  startDaemon(installation, env)

/** Waits until it accepts requests; returns where. */
export const listening = (daemon: Running) =>
  Effect.map(daemon.line('"listening"'), (line) => `http://127.0.0.1:${/"port":(\d+)/.exec(line)?.[1]}`)

/** Sends a request with a key, and reads the whole answer. */
const poster =
  (agent: Agent, key: string) =>
  (url: string, body: unknown, headers: Readonly<Record<string, string>> = {}) =>
    Effect.tryPromise(async (signal) => {
      const response = await request(url, {
        dispatcher: agent,
        signal,
        method: "POST",
        headers: { "x-api-key": key, "content-type": "application/json", ...headers },
        body: JSON.stringify(body)
      })
      return { status: response.statusCode, body: await response.body.text() }
    })

const registered = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

/** Opens a shop: a first daemon makes its key and registers its endpoint, and ends. */
export const open = Effect.gen(function* () {
  const caFile = join(yield* temporaryFolder, "ca.pem")
  const authority = yield* makeAuthority
  const receiver = yield* startReceiver({ authority, caFile }).pipe(Effect.provide(NodeFileSystem.layer))
  const chain = yield* localChain
  const installation = yield* install(chain, { extra_ca_file: caFile })
  const agent = yield* httpAgent
  const { post, secret } = yield* Effect.scoped(
    Effect.gen(function* () {
      const daemon = yield* startDaemon(installation)
      const url = yield* listening(daemon)
      const post = poster(agent, yield* createKey(installation))
      const { secret } = yield* tilldJson<{ secret: string }>(
        ["webhooks", "secret", "--mode", "test", "--config", installation.config],
        { env: installation.env }
      )
      const hook = { url: receiver.url + paths.endpoint, events: StatusEventKind.literals, secret: registered }
      const answer = yield* post(`${url}/v1/webhooks`, hook)
      if (answer.status !== 201) return yield* Effect.dieMessage(`The endpoint was not registered: ${answer.body}`)
      yield* daemon.end("SIGTERM")
      return { post, secret }
    })
  )
  const secrets = { [paths.own]: secret, [paths.endpoint]: registered }
  const shop: Shop = { installation, chain, receiver, post, secrets }
  return shop
})

/**
 * Requests a payment. None: no response came, so it is unknown whether it was created. Asking again returns the same one,
 * by its idempotency key.
 */
export const place = ({ post, receiver }: Shop, url: string, merchantRef: string) =>
  post(
    `${url}/v1/payments`,
    { merchantRef, chain: "base", currency: "USDC", amount: String(amount), webhookUrl: receiver.url + paths.own },
    { "idempotency-key": merchantRef }
  ).pipe(Effect.option)

/** Pays what it is given until it is interrupted; several payments share their blocks. */
export const makePayer = ({ chain }: Shop) =>
  Effect.map(Queue.unbounded<PaymentObject>(), (payments) => ({
    pay: (payment: PaymentObject): void => void payments.unsafeOffer(payment),
    run: Effect.gen(function* () {
      for (const { address } of [yield* payments.take, ...(yield* payments.takeAll)]) {
        yield* chain.payToken({ symbol: "USDC", to: address as Address, amount })
      }
      yield* chain.mine(3)
    }).pipe(Effect.forever)
  }))
