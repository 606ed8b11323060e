import { randomBytes } from "node:crypto"
import { HttpClient, HttpClientRequest, HttpClientResponse } from "@effect/platform"
import { Console, Data, Duration, Effect, Schema } from "effect"
import { type Address, encodeFunctionData, erc20Abi } from "viem"
import { type EventKind, StatusEventKind, WebhookEvent } from "../Domain/Event.ts"
import type { LocalCall, LocalChain } from "./LocalChain.ts"
import { type Receiver, verifySignature } from "./Receiver.ts"

interface WalletCall extends LocalCall {
  readonly chainId: number
}

const native = /^ethereum:(0x[0-9a-fA-F]{40})@(\d+)\?value=(\d+)$/
const token = /^ethereum:(0x[0-9a-fA-F]{40})@(\d+)\/transfer\?address=(0x[0-9a-fA-F]{40})&uint256=(\d+)$/

/** The transaction that a payment's URI asks for; undefined for any other text. */
export const walletCall = (uri: string): WalletCall | undefined => {
  const [, to, chainId, value] = native.exec(uri) ?? []
  if (to !== undefined && value !== undefined) {
    return { chainId: Number(chainId), to: to as Address, value: BigInt(value), gas: 100_000n }
  }
  const [, contract, on, receiver, units] = token.exec(uri) ?? []
  if (contract === undefined || units === undefined) return undefined
  const args = [receiver as Address, BigInt(units)] as const
  const data = encodeFunctionData({ abi: erc20Abi, functionName: "transfer", args })
  return { chainId: Number(on), to: contract as Address, data, gas: 200_000n }
}

/** The URI of the link "open in a wallet" in a checkout page's HTML. */
export const uriOfPage = (html: string): string | undefined =>
  /href="(ethereum:[^"]+)"/.exec(html)?.[1]?.replaceAll("&amp;", "&")

/** The demo failed: `message` says what is missing or wrong. */
export class DemoFailed extends Data.TaggedError("DemoFailed")<{ readonly message: string }> {}

export interface DemoOptions {
  /** Base of the API. */
  readonly url: string
  readonly apiKey: string
  readonly chains: ReadonlyArray<Pick<LocalChain, "chainId" | "send">>
  readonly receiver: Pick<Receiver, "url" | "take">
}

const deadline = Duration.seconds(60)

/** A price, for which the customer chooses USDC on polygon, and a plain payment. */
const invoice = { merchantRef: "demo-price", price: { amount: "25.00", currency: "EUR" } }
const choice = "USDC-polygon"
const payment = { merchantRef: "demo-native", currency: "ETH", chain: "base", amount: "10000000000000000" }

const expected: ReadonlyArray<EventKind> = ["payment.created", "payment.detecting", "payment.confirmed"]

const Created = Schema.Struct({ id: Schema.String, checkoutUrl: Schema.String })
const Chosen = Schema.Struct({ payment: Schema.String })

const decodeEvent = Schema.decodeUnknown(Schema.parseJson(WebhookEvent))

const post = ({ apiKey, url }: DemoOptions, path: string, body: unknown) =>
  Effect.gen(function* () {
    const client = yield* HttpClient.HttpClient
    const request = yield* HttpClientRequest.post(`${url}${path}`).pipe(
      HttpClientRequest.setHeader("x-api-key", apiKey),
      HttpClientRequest.bodyJson(body)
    )
    const response = yield* client.execute(request)
    if (response.status === 201) return response
    return yield* new DemoFailed({ message: `POST ${path} answered ${response.status}: ${yield* response.text}` })
  })

/** Pays as a customer does: by the URI that the checkout page hands to a wallet. */
const pay = ({ chains }: DemoOptions, checkoutUrl: string) =>
  Effect.gen(function* () {
    const client = yield* HttpClient.HttpClient
    const page = yield* (yield* client.get(checkoutUrl)).text
    const call = walletCall(uriOfPage(page) ?? "")
    const chain = chains.find(({ chainId }) => chainId === call?.chainId)
    if (call === undefined || chain === undefined) {
      return yield* new DemoFailed({ message: `The checkout page ${checkoutUrl} does not say what to pay` })
    }
    return yield* chain.send(call)
  })

const payFor = (options: DemoOptions, id: string, checkoutUrl: string) =>
  Effect.gen(function* () {
    const txHash = yield* pay(options, checkoutUrl)
    yield* Console.log(`paid      ${id}  in transaction ${txHash}`)
    return { id, txHash }
  })

const buy = (options: DemoOptions) =>
  Effect.gen(function* () {
    const response = yield* post(options, "/v1/payments", payment)
    const { checkoutUrl, id } = yield* HttpClientResponse.schemaBodyJson(Created)(response)
    yield* Console.log(`created   ${id}  0.01 ETH on base, to be paid at ${checkoutUrl}`)
    return yield* payFor(options, id, checkoutUrl)
  })

/** As a customer does it: chooses on the page, and pays what it says then. */
const buyForPrice = (options: DemoOptions) =>
  Effect.gen(function* () {
    const client = yield* HttpClient.HttpClient
    const response = yield* post(options, "/v1/invoices", invoice)
    const { checkoutUrl, id } = yield* HttpClientResponse.schemaBodyJson(Created)(response)
    yield* Console.log(`created   ${id}  25.00 EUR, to be paid at ${checkoutUrl}`)
    const form = HttpClientRequest.bodyUrlParams({ choice })(HttpClientRequest.post(`${checkoutUrl}/choose`))
    yield* client.execute(form)
    const read = HttpClientRequest.setHeader(
      "x-api-key",
      options.apiKey
    )(HttpClientRequest.get(`${options.url}/v1/invoices/${id}`))
    const chosen = yield* HttpClientResponse.schemaBodyJson(Chosen)(yield* client.execute(read))
    yield* Console.log(`chosen    ${chosen.payment}  ${choice}`)
    return yield* payFor(options, chosen.payment, checkoutUrl)
  })

interface Paid {
  readonly id: string
  readonly txHash: string
}

/** Prints each event as it arrives, until every payment has all of its events. */
const receive = ({ receiver }: DemoOptions, secret: string, payments: ReadonlyArray<Paid>, missing: Set<string>) =>
  Effect.gen(function* () {
    for (const { id } of payments) for (const kind of expected) missing.add(`${kind} of ${id}`)
    while (missing.size > 0) {
      const request = yield* receiver.take
      if (!verifySignature(request, secret)) {
        return yield* new DemoFailed({
          message: `A webhook's X-Service-Signature is wrong: ${request.body.toString("utf8")}`
        })
      }
      const { data, event, id } = yield* decodeEvent(request.body.toString("utf8"))
      const payment = payments.find((candidate) => candidate.id === data.id)
      if (payment === undefined || !expected.includes(event)) {
        return yield* new DemoFailed({ message: `An event that the demo did not lead to: ${event} of ${data.id}` })
      }
      if (event === "payment.confirmed" && data.txHash !== payment.txHash) {
        return yield* new DemoFailed({ message: `${data.id} was paid by ${payment.txHash}, not by ${data.txHash}` })
      }
      const transaction = data.txHash === undefined ? "" : `  ${data.txHash}`
      yield* Console.log(`webhook   ${data.id}  ${event.padEnd(17)}  ${id}  signature verified${transaction}`)
      missing.delete(`${event} of ${data.id}`)
    }
  })

/**
 * Runs the demo: registers a webhook, makes an invoice and a payment, pays both by their checkout pages, and waits for their signed
 * events. Fails after a minute with what is missing.
 */
export const demo = Effect.fn("Sandbox.demo")(function* (options: DemoOptions) {
  const secret = `whsec_${randomBytes(32).toString("base64")}`
  const missing = new Set<string>(["the payments themselves"])
  yield* Effect.gen(function* () {
    const url = `${options.receiver.url}/tilld`
    yield* post(options, "/v1/webhooks", { url, events: StatusEventKind.literals, secret })
    yield* Console.log(`webhooks  ${url}`)
    const payments = [yield* buyForPrice(options), yield* buy(options)]
    missing.clear()
    yield* receive(options, secret, payments, missing)
    yield* Console.log(`Both payments are confirmed, and every event arrived and was verified.`)
  }).pipe(
    Effect.catchTags({
      RequestError: (error) => new DemoFailed({ message: `The API does not answer: ${error.message}` }),
      ResponseError: (error) => new DemoFailed({ message: `The API's answer cannot be read: ${error.message}` }),
      HttpBodyError: Effect.die,
      ParseError: (error) => new DemoFailed({ message: `Not the JSON that was expected: ${error.message}` }),
      LocalRpcError: (error) => new DemoFailed({ message: error.message })
    }),
    Effect.timeoutFail({
      duration: deadline,
      onTimeout: () =>
        new DemoFailed({ message: `Missing after ${Duration.format(deadline)}: ${[...missing].join(", ")}` })
    })
  )
})
