import { manyAddresses } from "./Attack.ts"

/** The orders of the flooding process. */
export interface FloodOrder {
  readonly port: number
  readonly name: FloodName
  /** Of an account of the attackers' own. */
  readonly key: string
  /** Paths of checkout pages, one for each client. */
  readonly pages: ReadonlyArray<string>
  readonly connections: number
  readonly seconds: number
}

/** One way to flood a daemon, over connections that are made again whenever they are closed. */
interface Flood {
  /** What a connection sends first; connections are numbered. */
  readonly says: (order: FloodOrder, connection: number) => string
  /** What it does then: the same again with each answer, a byte each second, a reset, or nothing. */
  readonly next: "ask" | "drip" | "reset" | "wait"
  /** Requests under way at once, where it asks. */
  readonly pipelined?: number
}

/** Addresses that the connections come from, in turn. */
export const clients = manyAddresses ? 40 : 1

const get = (path: string, headers = "") => `GET ${path} HTTP/1.1\r\nhost: x\r\n${headers}\r\n`
const post = (headers: string) =>
  `POST /v1/payments HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n${headers}`
const pageOf = ({ pages }: FloodOrder, connection: number) => pages[connection % pages.length] ?? "/"
const asks = (path: string, pipelined = 1): Flood => ({ says: () => get(path), next: "ask", pipelined })

/** Text, since a body of so many chunks is not to be made for each connection. The last chunk never comes. */
const tinyChunks = "1\r\n \r\n".repeat(65_000)

/** More than a request may have. */
const padding = "x".repeat(128 * 1024)

/** All ways. A daemon that stands one of them must stand them all. */
export const floods = {
  idle: { says: () => "", next: "wait" },
  "slow headers": { says: () => post("x-slow: "), next: "drip" },
  "slow bodies": { says: () => post("content-length: 60000\r\n\r\n"), next: "drip" },
  "tiny chunks": { says: () => `${post("transfer-encoding: chunked\r\n\r\n")}${tinyChunks}`, next: "wait" },
  "tiny chunks with a key": {
    says: ({ key }) => `${post(`x-api-key: ${key}\r\ntransfer-encoding: chunked\r\n\r\n`)}${tinyChunks}`,
    next: "wait"
  },
  "endless bodies": { says: () => `${post("content-length: 99999999999\r\n\r\n")}${padding}`, next: "wait" },
  "blank lines": { says: () => get("/v1/nothing") + "\r\n".repeat(64 * 1024), next: "wait" },
  trailers: {
    says: () => `${post("transfer-encoding: chunked\r\n\r\n")}0\r\n${"a:\r\n".repeat(16_000)}\r\n`,
    next: "wait"
  },
  "unknown keys": {
    says: (_, connection) => get("/v1/payments", `x-api-key: svc_test_${connection}\r\n`),
    next: "ask"
  },
  pipelines: asks("/readyz", 32),
  resets: { says: () => get("/readyz"), next: "reset" },
  streams: { says: (order, connection) => get(`${pageOf(order, connection)}/events`), next: "wait" },
  "big headers": { says: () => get("/v1/payments", `x-large: ${"x".repeat(256 * 1024)}\r\n`), next: "wait" },
  "checkout pages": { says: (order, connection) => get(pageOf(order, connection)), next: "ask" },
  readiness: asks("/readyz"),
  reference: asks("/docs"),
  document: asks("/openapi.json"),
  "nothing there": asks("/v1/nothing")
} as const satisfies Readonly<Record<string, Flood>>

export type FloodName = keyof typeof floods
export const floodNames = Object.keys(floods) as ReadonlyArray<FloodName>
export const floodOf = (name: FloodName): Flood => floods[name]

/** How many answers came, by status, and how many connections were closed. */
export type Answers = Readonly<Record<string, number>>
