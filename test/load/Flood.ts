import { manyAddresses } from "./Attack.ts"

/** Connections that ask for something without a key as fast as they are answered, and connect again when they are closed. */
export interface Flood {
  readonly path: string
  /** The path is that of a payment's checkout page, which is made before. */
  readonly isCheckout?: boolean
  /** Sent with each request. */
  readonly headers?: string
  readonly connections: number
  /** Requests that each has under way. */
  readonly pipelined?: number
  /** Clients that the connections belong to. */
  readonly clients?: number
  readonly seconds: number
}

const seconds = 10
const connections = 250
const clients = manyAddresses ? 25 : 1

/** What strangers may ask, and how. */
export const floods: Readonly<Record<string, Flood>> = {
  readiness: { path: "/readyz", connections, seconds },
  "readiness, 32 at a time": { path: "/readyz", connections, pipelined: 32, seconds },
  "readiness, by 25 clients": { path: "/readyz", connections, clients, seconds },
  reference: { path: "/docs", connections, seconds },
  document: { path: "/openapi.json", connections, seconds },
  "checkout pages": { path: "/pay/", isCheckout: true, connections, clients: manyAddresses ? 50 : 1, seconds },
  "nothing there": { path: "/v1/nothing", connections, seconds },
  "guessed keys": { path: "/v1/payments", headers: "x-api-key: svc_test_guess\r\n", connections, seconds }
}

/** What the flooding process is told. */
export interface FloodOrder extends Flood {
  readonly port: number
}

/** How many answers came, by status. */
export type Answers = Readonly<Record<string, number>>
