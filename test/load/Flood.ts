/** Linux answers at every address of 127.0.0.0/8; elsewhere all attackers are one client, and the only one. */
export const manyAddresses = process.platform === "linux"

/** The orders of the flooding process. */
export interface FloodOrder {
  readonly port: number
  /** How many connections flood in which ways. */
  readonly counts: FloodCounts
  /** For so long connections are made again whenever they are closed; absent: none is, until the server has ended all. */
  readonly seconds?: number
  /** Of an account of the attackers' own. */
  readonly key: string
  /** Paths of checkout pages, one for each client. */
  readonly pages: ReadonlyArray<string>
}

/** One way to flood a daemon. */
interface Flood {
  /** What a connection sends first; connections are numbered. */
  readonly says: (order: FloodOrder, connection: number) => string
  /** What it does then: the same again with each answer, a byte each second, a reset, or nothing. */
  readonly next: "ask" | "drip" | "reset" | "wait"
  /** Requests under way at once, where it asks. */
  readonly pipelined?: number
  /** The address that all of them come from. */
  readonly from?: string
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

/** What strangers may do that ask for nothing; `kept` is a connection that is kept after one request. */
const silent = {
  idle: { says: () => "", next: "wait" },
  kept: { says: () => get("/healthz"), next: "wait" },
  greedy: { says: () => "", next: "wait", from: "127.0.2.1" }
} as const satisfies Readonly<Record<string, Flood>>

/** All ways that have no end. A daemon that stands one of them must stand them all. */
const endless = {
  idle: silent.idle,
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
  "big headers": { says: () => get("/v1/payments", `x-large: ${"x".repeat(256 * 1024)}\r\n`), next: "wait" },
  streams: { says: (order, connection) => get(`${pageOf(order, connection)}/events`), next: "wait" },
  "unknown keys": {
    says: (_, connection) => get("/v1/payments", `x-api-key: svc_test_${connection}\r\n`),
    next: "ask"
  },
  pipelines: asks("/readyz", 32),
  resets: { says: () => get("/readyz"), next: "reset" },
  "checkout pages": { says: (order, connection) => get(pageOf(order, connection)), next: "ask" },
  readiness: asks("/readyz"),
  reference: asks("/docs"),
  document: asks("/openapi.json"),
  "nothing there": asks("/v1/nothing")
} as const satisfies Readonly<Record<string, Flood>>

export type FloodName = keyof typeof endless | keyof typeof silent
export type FloodCounts = Readonly<Partial<Record<FloodName, number>>>
export const endlessNames = Object.keys(endless) as ReadonlyArray<keyof typeof endless>
export const floodOf = (name: FloodName): Flood => ({ ...endless, ...silent })[name]

/** How many answers came to a flood, by status, and how many connections were `closed` without one. */
export type Answers = Readonly<Partial<Record<FloodName, Readonly<Record<string, number>>>>>
