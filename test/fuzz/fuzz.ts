import Database from "better-sqlite3"
import { Effect } from "effect"
import * as fc from "fast-check"
import type { OpenApiDocument } from "../../src/Documents/openApi.ts"
import { PublicExceptionKind } from "../../src/Domain/Exception.ts"
import { startLocalChain } from "../../src/Sandbox/LocalChain.ts"
import type { Installation } from "../bench/daemon.ts"
import { memoryOf } from "../bench/memory.ts"
import { runTilld } from "../bench/processes.ts"
import { type AloneDaemon, startAlone } from "../lib/offlineDaemon.ts"
import { validateAnswer } from "../lib/openapi.ts"
import { type Answer, RawClient } from "./client.ts"
import { type Drawn, requests } from "./requests.ts"

/** A request whose answer is not what the document says. */
export interface Fault {
  /** Its number among those of the seed. */
  readonly at: number
  readonly request: string
  readonly answer: string
  readonly problems: ReadonlyArray<string>
}

export interface Report {
  readonly faults: ReadonlyArray<Fault>
  /** How many answers an operation gave with a status: `POST /v1/payments 201`. */
  readonly answers: ReadonlyMap<string, number>
  /** Of the daemon that was asked most, in MiB, once it was warm and at the end. */
  readonly memory: { readonly before: number; readonly after: number }
}

interface Keys {
  readonly good: string
  readonly reader: string
  readonly live: string
}

const unreserved = /[A-Za-z0-9._~-]/

/** Percent-encoding that takes lone surrogates too; what begins with a percent sign stays as it is. */
const encoded = (text: string): string =>
  text.startsWith("%")
    ? text.replace(/[^\x21-\x7e]/g, "")
    : Array.from(Buffer.from(text), (byte) => {
        const char = String.fromCharCode(byte)
        return unreserved.test(char) ? char : `%${byte.toString(16).padStart(2, "0")}`
      }).join("")

/** Prefixes of ids, and cursors. */
const kinds = ["pay", "wh", "quote", "dlv", "exc", "cursor"] as const
type Kind = (typeof kinds)[number]

/** What the server has given so far, for requests that come back to it. */
class Memory {
  readonly #known: Readonly<Record<Kind, Array<string>>> = { pay: [], wh: [], quote: [], dlv: [], exc: [], cursor: [] }

  pick(kind: Kind, at: number): string {
    const all = this.#known[kind].slice(-50)
    return all[at % Math.max(1, all.length)] ?? "pay_none"
  }

  learn({ body, status }: Answer): void {
    if (status >= 300 || !body.startsWith("{")) return
    const { cursor, data, id } = JSON.parse(body) as Readonly<Record<"cursor" | "data" | "id", unknown>>
    // Of a list the first one.
    this.#learnId(id ?? (Array.isArray(data) ? data[0]?.id : undefined))
    if (typeof cursor === "string") this.#known.cursor.push(cursor)
  }

  #learnId(id: unknown): void {
    const kind = kinds.find((one) => typeof id === "string" && id.startsWith(`${one}_`))
    if (kind !== undefined && typeof id === "string") this.#known[kind].push(id)
  }
}

/** What the `{id}` of a path names. */
const kindOf = (path: string): Kind =>
  path.startsWith("/v1/webhooks")
    ? "wh"
    : path.startsWith("/v1/deliveries")
      ? "dlv"
      : path.startsWith("/v1/exceptions")
        ? "exc"
        : "pay"

const targetOf = ({ id, path, query }: Drawn, memory: Memory): string => {
  const idText = encoded(typeof id === "string" ? id : memory.pick(kindOf(path), id.known))
  const search = query.map(
    ([name, value]) =>
      `${encoded(name)}=${encoded(typeof value === "string" ? value : memory.pick("cursor", value.known))}`
  )
  return `${path.replace("{id}", idText)}${search.length === 0 ? "" : `?${search.join("&")}`}`
}

const bodyOf = ({ body, quote }: Drawn, memory: Memory): Buffer | undefined =>
  body === undefined || quote === undefined
    ? body
    : Buffer.from(body.toString("latin1").replace("{", `{"quoteId":"${memory.pick("quote", quote)}",`), "latin1")

const framed = (drawn: Drawn, body: Buffer | undefined): readonly [headers: ReadonlyArray<string>, body: Buffer] => {
  if (body === undefined) return [[], Buffer.alloc(0)]
  if (!drawn.chunked || body.length === 0) return [[`content-length: ${body.length}`], body]
  const chunk = [Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from("\r\n0\r\n\r\n")]
  return [["transfer-encoding: chunked"], Buffer.concat(chunk)]
}

/** The bytes of a request. Each comes from an address of its own, so that a wrong key is not answered late. */
const bytesOf = (drawn: Drawn, keys: Keys, at: number, target: string, content: Buffer | undefined): Buffer => {
  const [framing, body] = framed(drawn, content)
  const key = drawn.key === "odd" ? drawn.oddKey : drawn.key === "none" ? undefined : keys[drawn.key]
  const named = new Set(drawn.headers.map(([name]) => name))
  const lines = [
    `${drawn.method} ${target} HTTP/1.1`,
    "host: fuzz",
    ...(named.has("x-forwarded-for") ? [] : [`x-forwarded-for: 10.${(at >> 16) & 255}.${(at >> 8) & 255}.${at & 255}`]),
    ...(key === undefined ? [] : [`x-api-key: ${key}`]),
    ...(content === undefined || named.has("content-type") ? [] : ["content-type: application/json"]),
    ...drawn.headers.map(([name, value]) => `${name}: ${value}`),
    ...framing
  ]
  return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), body])
}

/** JSON where it is JSON, and else a text. */
const read = ({ body, headers }: Answer): unknown =>
  body !== "" && String(headers["content-type"]).startsWith("application/json") ? JSON.parse(body) : body

/** What is wrong with an answer. A 503 is right only where there is nothing to be served. */
const problemsOf = (document: OpenApiDocument, drawn: Drawn, target: string, answer: Answer): ReadonlyArray<string> => {
  const body = read(answer)
  const isMeant = drawn.path === "/readyz" || answer.body.includes('"RATE_UNAVAILABLE"')
  const broken =
    answer.status >= 500 && !(answer.status === 503 && isMeant) ? [`the server failed: ${answer.status}`] : []
  return [...broken, ...validateAnswer(document, drawn.method, target, answer.status, answer.headers, body)]
}

interface Place {
  readonly daemon: AloneDaemon
  readonly keys: Keys
  readonly document: OpenApiDocument
}

const play = async ({ daemon, document, keys }: Place, drawn: ReadonlyArray<Drawn>, from: number, warm: () => void) => {
  const client = new RawClient(daemon.port)
  const memory = new Memory()
  const faults: Array<Fault> = []
  const answers = new Map<string, number>()
  for (const [i, one] of drawn.entries()) {
    const target = targetOf(one, memory)
    const bytes = bytesOf(one, keys, from + i, target, bodyOf(one, memory))
    const fault = (answer: string, problems: ReadonlyArray<string>) =>
      faults.push({ at: from + i, request: bytes.toString("latin1").slice(0, 4_000), answer, problems })
    try {
      const answer = await client.ask(bytes, one.method === "HEAD")
      const problems = problemsOf(document, one, target, answer)
      const name = `${one.method} ${one.path} ${answer.status}`
      answers.set(name, (answers.get(name) ?? 0) + 1)
      memory.learn(answer)
      if (problems.length > 0) fault(`${answer.status} ${JSON.stringify(answer.headers)}\n${answer.body}`, problems)
    } catch (error) {
      client.close()
      fault(String(error), ["no answer that could be read"])
    }
    if (i === Math.floor(drawn.length / 4)) warm()
  }
  client.close()
  return { faults, answers }
}

const prices = {
  ETH: "2500",
  MATIC: "0.5",
  USDC: "1",
  USDT: "1",
  DAI: "1",
  WBTC: "60000",
  EUR: "1.10",
  GBP: "1.25",
  MXN: "0.05"
}

/** Exceptions of all kinds, at payments that are there from the start: no one pays for those of the fuzz. */
const storeExceptions = ({ database }: Installation) => {
  const store = new Database(database)
  store.exec(`
    INSERT INTO payments (id, checkout_token, account_id, mode, merchant_ref, amount, currency, chain, address, wallet,
      wallet_index, status, created_at, expires_at, metadata, ended_at)
    SELECT 'pay_' || printf('%022d', value), value, 'default', 'test', 'before the fuzz ' || value, '1000', 'USDC', 'base',
      '0x' || printf('%040d', value), fingerprint, 1000000 + value, 'expired', 0, 1, '{}', 2
    FROM wallets, json_each('[1,2,3,4,5]');
    INSERT INTO exceptions (id, address, key, payment_id, account_id, kind, chain, mode, tx_hash, block_number, sender, currency,
      amount, opened_at)
    SELECT 'exc_' || p.value || printf('%021d', k.key), '0x' || printf('%040d', p.value), k.value || ':' || k.key,
      'pay_' || printf('%022d', p.value), 'default', k.value, 'base', 'test',
      iif(k.key % 3 = 0, NULL, '0x' || printf('%064d', k.key)), iif(k.key % 3 = 0, 9, NULL),
      iif(k.key % 2, '0x' || printf('%040d', k.key), NULL), 'USDC', '1000', p.value
    FROM json_each('[1,2,3,4,5]') AS p, json_each('${JSON.stringify(PublicExceptionKind.literals)}') AS k;`)
  store.close()
}

/** A daemon on two local chains, with keys of several kinds. */
const furnish = (limits: Readonly<Record<string, number>>, chains: Readonly<Record<string, unknown>>) =>
  Effect.gen(function* () {
    const daemon = yield* startAlone({
      // The fuzz says itself where its requests come from.
      server: { port: 0, public_url: "http://127.0.0.1:8080", trusted_proxies: ["127.0.0.1/32"] },
      rates: { sources: ["fixed"], fixed: prices },
      limits,
      chains
    })
    const { config, env } = daemon.installation
    const newKey = (...more: ReadonlyArray<string>) =>
      Effect.map(
        runTilld<{ readonly key: string }>(["keys", "create", "--config", config, "--name", "fuzz", ...more], env),
        ({ key }) => key
      )
    const [reader, live] = yield* Effect.all(
      [
        newKey("--mode", "test", "--permissions", "payments:read,webhooks:read,exceptions:read"),
        newKey("--mode", "live")
      ],
      { concurrency: 2 }
    )
    storeExceptions(daemon.installation)
    const read = new RawClient(daemon.port)
    const { body } = yield* Effect.promise(() =>
      read.ask(Buffer.from("GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n"), false)
    )
    read.close()
    const place: Place = { daemon, keys: { good: daemon.key, reader, live }, document: JSON.parse(body) }
    return place
  })

const localChains = Effect.all(
  {
    base: startLocalChain({ chain: "base", chainId: 31_337, tokens: ["USDC"] }),
    polygon: startLocalChain({ chain: "polygon", chainId: 31_338, tokens: ["USDC", "USDT"] })
  },
  { concurrency: 2 }
)

/** What no seed is sure to draw: a request that is well-formed, and refused for what it names. */
const unprocessable: Drawn = {
  ...{ method: "POST", path: "/v1/payments", id: "", query: [], key: "good", oddKey: "", headers: [], chunked: false },
  body: Buffer.from(
    '{"merchantRef":"no such quote","amount":"1000","currency":"USDC","chain":"base","quoteId":"quote_none"}'
  ),
  quote: undefined
}

/** Sends the requests of a seed, a tenth of them to a daemon that allows few, and holds every answer against the document. */
export const fuzz = Effect.fn("test.fuzz")(function* (seed: number, count: number) {
  const local = yield* localChains
  const chains = Object.fromEntries(
    Object.entries(local).map(([name, { chainId, tokens, url }]) => [
      name,
      { test: { rpc_urls: [url], chain_id: chainId, confirmations: 3, poll_interval: "1 second", tokens } }
    ])
  )
  const place = yield* furnish({ per_minute: 1_000_000, per_hour: 100_000_000 }, chains)
  const strict = yield* furnish({ per_minute: 5, per_hour: 10 }, chains)
  const drawn = fc.sample(requests(place.document), { numRuns: count, seed })
  const few = Math.floor(count / 10)
  const memory = { before: Number.NaN, after: Number.NaN }
  const warm = () => {
    memory.before = memoryOf(place.daemon.pid, "now")
  }
  const many = yield* Effect.promise(() => play(place, [...drawn.slice(few), unprocessable], few, warm))
  memory.after = memoryOf(place.daemon.pid, "now")
  const limited = yield* Effect.promise(() => play(strict, drawn.slice(0, few), 0, () => undefined))
  const answers = new Map(many.answers)
  for (const [name, times] of limited.answers) answers.set(name, (answers.get(name) ?? 0) + times)
  const report: Report = { faults: [...limited.faults, ...many.faults], answers, memory }
  return report
}, Effect.scoped)
