import { request } from "node:http"
import { connect } from "node:net"
import { Effect, Schedule } from "effect"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import type { Daemon, Order } from "./daemon.ts"

interface Reply {
  readonly status: number | undefined
  readonly connection: string | undefined
  readonly body: PaymentObject
}

/** Begins the request that makes a payment: when this completes, the daemon has its head and waits for its body. */
export const beginPayment = ({ key, url }: Pick<Daemon, "key" | "url">, order: Order) =>
  Effect.async<{ readonly finish: Effect.Effect<Reply> }>((resume) => {
    const body = JSON.stringify(order)
    const sent = request(`${url}/v1/payments`, {
      method: "POST",
      headers: {
        "x-api-key": key,
        "content-type": "application/json",
        "content-length": body.length,
        expect: "100-continue"
      }
    })
    const finish = Effect.async<Reply>((resume) => {
      sent.once("error", (error) => resume(Effect.die(error)))
      sent.once("response", (response) => {
        let text = ""
        response.setEncoding("utf8").on("data", (chunk: string) => {
          text += chunk
        })
        response.once("end", () => {
          const { headers, statusCode } = response
          resume(Effect.succeed({ status: statusCode, connection: headers.connection, body: JSON.parse(text) }))
        })
      })
      sent.end(body)
    })
    sent.once("error", (error) => resume(Effect.die(error)))
    sent.once("continue", () => resume(Effect.succeed({ finish })))
    sent.flushHeaders()
  })

/** Whether no one listens at the address. */
export const isRefused = (url: string) =>
  Effect.async<boolean>((resume) => {
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname)
    socket.once("connect", () => resume(Effect.succeed(false)))
    socket.once("error", () => resume(Effect.succeed(true)))
    return Effect.sync(() => socket.destroy())
  })

/** Waits until no one listens at the address any more. */
export const untilRefused = (url: string) =>
  Effect.repeat(isRefused(url), { until: (refused) => refused, schedule: Schedule.spaced("10 millis") })
