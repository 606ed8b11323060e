import { readdirSync, readFileSync } from "node:fs"
import type { IncomingMessage } from "node:http"
import { join } from "node:path"
import { setImmediate as eventLoopTurn } from "node:timers/promises"
import { HttpApi } from "@effect/platform"
import { Effect, Either, Option, Schema, SchemaAST } from "effect"
import { describe, expect, it } from "vitest"
import { Api } from "../src/Api.ts"
import { normalSignInName } from "../src/Auth/credentials.ts"
import { isKey, shownPrefix } from "../src/Auth/keyFormat.ts"
import { normalText } from "../src/Auth/passwordHash.ts"
import {
  badStatus,
  classifyError,
  type MakeRpcError,
  resultsInOrder,
  retryAfterOf
} from "../src/Chains/rpc/batchResponse.ts"
import { Address, Count, decoder, Hash, LogsBloom, Quantity, Word } from "../src/Chains/rpc/methods.ts"
import { RpcError } from "../src/Chains/rpc/RpcError.ts"
import { readErrorResponse, readResponse } from "../src/Chains/rpc/readResponse.ts"
import { languageOf } from "../src/Checkout/languages.ts"
import { allOperations } from "../src/Control/operations.ts"
import { toChecksummed } from "../src/Domain/Address.ts"
import { invalid } from "../src/Domain/ApiError.ts"
import type { ApiKey } from "../src/Domain/ApiKey.ts"
import { AccountId } from "../src/Domain/Ids.ts"
import { Shop } from "../src/Domain/Shop.ts"
import { parseBody } from "../src/Http/body.ts"
import { clientAddressOf, networkOf } from "../src/Http/clientAddress.ts"
import { makeCursors } from "../src/Http/cursor.ts"
import { errorReply, unlessKept } from "../src/Http/HttpReply.ts"
import { isCalledBy } from "../src/Http/hostNames.ts"
import type { PageRequest } from "../src/Http/PageHandler.ts"
import { redactor } from "../src/Http/redacted.ts"
import { makeRouter, payloadDecoder, queryDecoder } from "../src/Http/routes.ts"
import { fieldProblemsOf, type Problems } from "../src/Http/validationProblems.ts"
import { percentDecoded } from "../src/lib/httpClient.ts"
import { canonicalRange } from "../src/lib/IpRange.ts"
import { parseWithTexts } from "../src/lib/Json.ts"
import { JsonScan } from "../src/lib/JsonScan.ts"
import { closest } from "../src/lib/suggestion.ts"
import { shown } from "../src/lib/text.ts"
import { HttpsUrl, parseUrl } from "../src/lib/Url.ts"
import { type AnyOperation, decodeInput, fieldsOf, jsonOf } from "../src/Operations/operation.ts"
import { takesBrotli } from "../src/Pages/assets.ts"
import { cookieOf, isSameOrigin } from "../src/Portal/Desk.ts"
import { readFilters } from "../src/Portal/pages/DeliveryViews.tsx"
import { browserName } from "../src/Portal/pages/Me.tsx"
import { nextPath } from "../src/Portal/signInPages.tsx"
import { baseUnitsOf, givenOf, textOf } from "../src/Portal/Viewer.ts"
import { matchRoute, readForm } from "../src/Portal.ts"
import { answerAgeOf, type Get, makeCoinbase, makeKraken } from "../src/Quotes/sources/exchanges.ts"
import type { PriceSource } from "../src/Quotes/sources/PriceSource.ts"
import { keyInValue } from "../src/Settings/keyMaterial.ts"
import { parseAddress } from "../src/Webhooks/transport/TargetGuard.ts"
import { root } from "./lib/tilld.ts"
import { harmlessText, type NamedText, type Shape, worstBodies, worstTexts } from "./lib/worstTexts.ts"

// Every parser of external text, with 64 KiB of its worst input. Regular expressions have a check of their own,
// in regexSafety.test.ts. The configuration and the arguments of commands are the operator's own.

const KiB = 1024
const key = { id: "key_1", account: "shop", mode: "test" } as unknown as ApiKey
const json = { "content-type": "application/json" }

const run = (effect: Effect.Effect<unknown, unknown>) => Effect.runSync(Effect.either(effect))

const refused = (decoded: ReturnType<typeof run>) =>
  Either.isLeft(decoded) ? errorReply(invalid(fieldProblemsOf([decoded.left as Problems])), "req_1").text : ""

const bodies: Array<readonly [string, Option.Option<Schema.Schema.All>]> = []
const queries: Array<readonly [string, Option.Option<Schema.Schema.All>]> = []
HttpApi.reflect(Api, {
  onGroup: () => {},
  onEndpoint: ({ endpoint: { method, path, payloadSchema, urlParamsSchema } }) => {
    if (Option.isSome(payloadSchema)) bodies.push([`${method} ${path}`, payloadSchema])
    queries.push([`${method} ${path}`, urlParamsSchema])
  }
})

const namesOf = (schema: Option.Option<Schema.Schema.All>) =>
  Option.match(schema, {
    onNone: () => [],
    onSome: ({ ast }) => SchemaAST.getPropertySignatures(ast).map(({ name }) => String(name))
  })

/** A parser, and the shapes of text that are the worst for it beside those that are for most. */
type Parser = readonly [name: string, parse: (text: string) => unknown, ...own: ReadonlyArray<Shape>]

/** From the bytes of a body to its refusal and its row in the log. */
const bodyParsers = bodies.map(([name, schema]): Parser => {
  const decode = payloadDecoder(schema)
  const redact = redactor(schema)
  return [
    `the body of ${name}`,
    (text) => {
      const parsed = run(parseBody(json, Buffer.from(text)))
      return Either.isLeft(parsed) ? "" : refused(run(decode(parsed.right, key))) + redact(parsed.right, false)
    }
  ]
})

/** Texts that are one part again and again. */
const repeated = (...parts: ReadonlyArray<string>) => parts.map((part): Shape => ["", part, ""])

/** Amounts, times, ids, URLs: what the fields of bodies and queries have the form of. */
const values: ReadonlyArray<Shape> = [
  ["1", "0", "x"],
  ["0.", "0", "1x"],
  ["2026-01-01T00:00:00.", "0", "x"],
  ["2026-01-01", "T00:00", ""],
  ["pay_", "a-", "!"],
  ["cursor_", "_-", "="],
  ["whsec_", "a", "\u0001"],
  ["https://", "a@", ""],
  ["https://", "é.", ""],
  ["https://xn--", "a", ""],
  ["https://a/", "../a/", ""],
  ["https://a/?", "%ff&", ""],
  ...repeated("💶", "payment.created,")
]

const fieldParsers = bodies.map(([name, schema]): Parser => {
  const decode = payloadDecoder(schema)
  const redact = redactor(schema)
  const names = namesOf(schema)
  return [
    `each field of ${name}`,
    (text) => {
      const body = { ...Object.fromEntries(names.map((field) => [field, text])), [text]: 0 }
      return refused(run(decode(body, key))) + redact(body, false)
    },
    ...values
  ]
})

const queryParsers = queries.map(([name, schema]): Parser => {
  const decode = queryDecoder(schema)
  const names = namesOf(schema)
  return [
    `the query of ${name}`,
    (text) => {
      const each = names.map((field) => `${field}=${text.replaceAll("&", "%26")}`).join("&")
      return [refused(run(decode(text, key))), refused(run(decode(each, key)))]
    },
    ...values,
    ...repeated("a&", "a=1&", "%25=")
  ]
})

const account = AccountId.make("shop")
const handlers = new Proxy({}, { get: () => new Proxy({}, { get: () => () => Effect.void }) })
const router = makeRouter(Api, handlers)
const clientAddress = clientAddressOf(["127.0.0.0/8", "::/0", "0.0.0.0/0"])
const isKnownHost = isCalledBy(["pay.example.com"])
const cursors = makeCursors({
  seal: () => new Uint8Array(),
  open: () => {
    throw new Error("forged")
  }
})
const routes = ["/", "/payments/:id", "/webhooks/:id/test"].map((path) => ({ method: "GET" as const, path }))
const request = (headers: Readonly<Record<string, string>>) =>
  ({ method: "GET", headers, socket: { remoteAddress: "127.0.0.1" } }) as unknown as IncomingMessage
const form = (text: string, type = "application/x-www-form-urlencoded") =>
  readForm({ body: Buffer.from(text), headers: { "content-type": type } } as unknown as PageRequest)
const isShop = Schema.decodeUnknownEither(Shop, { errors: "all" })
const isUrl = Schema.is(HttpsUrl)

/** By the name of the header, in lower case. */
const requestHeaders: Readonly<Record<string, readonly [Parser[1], ...ReadonlyArray<Shape>]>> = {
  "accept-encoding": [takesBrotli, ...repeated(" ,", "br "), ["br", " ", "x"]],
  "accept-language": [
    (text) => [languageOf(null, text), languageOf(text), languageOf(null, `en;q=${text}`)],
    ...repeated("en-", "en;q=0.", "q=1,")
  ],
  "content-encoding": [(text) => run(parseBody({ ...json, "content-encoding": text }, Buffer.from("{}")))],
  "content-type": [
    (text) => [run(parseBody({ "content-type": text }, Buffer.from("{}"))), form("a=1", text)],
    ["application/json", " ", ""],
    ["application/json;charset", " ", ""],
    ["", "; charset=utf-8", ""]
  ],
  cookie: [(text) => cookieOf(text, "session"), ...repeated("a=1; ", "session="), ["session", "=", ""]],
  host: [
    (host) => [isKnownHost({ host }), isSameOrigin({ host, origin: "https://a.example" }, "https://b.example")],
    ["[", ":", ""],
    ["[", "a", "]:x"],
    ["a:", "0", "x"],
    ["", "a.", ""]
  ],
  "if-none-match": [
    (text) => unlessKept(request({ "if-none-match": text }), { status: 200, headers: { etag: '"a"' }, text }),
    ...repeated('W/"a",', 'W/"')
  ],
  origin: [
    (origin) => isSameOrigin({ host: "a.example", origin }, "https://b.example"),
    ...values.filter(([head]) => head.startsWith("https:"))
  ],
  "user-agent": [browserName, ...repeated("Mac OS X", "Version/1"), ["Mozilla/5.0 ", "(", ""]],
  "x-api-key": [
    (text) => [isKey(text), shownPrefix(text)],
    ["svc_test_", "a", ""],
    ["svc_live_", "0", "!"],
    ["", "svc_test_", ""]
  ],
  "x-forwarded-for": [
    (text) => clientAddress(request({ "x-forwarded-for": text })),
    ...repeated("1.1.1.1,", "::1, ", "[::1]:1, ")
  ]
}

/** Headers that are compared with constants or counted, or read by Node alone. */
const comparedHeaders = ["content-length", "idempotency-key", "last-event-id", "sec-fetch-site", "transfer-encoding"]

/** Headers of responses. */
const responseHeaders: Readonly<Record<string, Parser[1]>> = {
  age: (text) => answerAgeOf({ age: text }, 0, 0),
  date: (text) => answerAgeOf({ date: text }, 0, 0),
  "retry-after": (text) => retryAfterOf(429, text, 0)
}

const requests: ReadonlyArray<Parser> = [
  ...Object.entries(requestHeaders).map(([name, parser]): Parser => [`the header ${name}`, ...parser]),
  ["a path", router, ["/v1/payments/", "%2", ""], ["/v1/", "a/", ""], ["/v1/payments/pay_", "a", "%"]],
  ["a path of the portal", (text) => matchRoute(routes, "GET", `/payments/${text}`), ...repeated("a/", "%2")],
  ["a client's address", networkOf, ["", "1:", ""], ["::ffff:", "1.", ""]],
  ["a cursor", (text) => cursors.decode(text, { account, mode: "test" }, "list"), ["", "_-", ""]],
  ["a form", (text) => form(text), ...repeated("a=1&", "a&", "%ff", "+")],
  ["a page's query", (text) => givenOf(new URLSearchParams(text)), ...repeated("a=1&", "%ff")],
  ["a page's field", (text) => textOf(new URLSearchParams([["a", text]]), "a")],
  ...["status", "from"].map(
    (name): Parser => [`the filter ${name} of deliveries`, (text) => readFilters(new URLSearchParams([[name, text]]))]
  )
]

/** Each field of an operation's input once, however many have it: as forms, queries and command lines give it. */
const operationFields = new Map<unknown, Parser>(
  allOperations.flatMap((operation) =>
    fieldsOf(operation.fields).map((field): [unknown, Parser] => [
      operation.fields[field.name],
      [
        `${field.name} of ${operation.name}`,
        (text) => decodeInput(operation as AnyOperation, { [field.name]: jsonOf(field, text) }),
        ...repeated("10 days ", "::/1 ", "a,"),
        ["whsec_", "a", " "]
      ]
    ])
  )
)

const texts: ReadonlyArray<Parser> = [
  ...fieldParsers,
  ...queryParsers,
  ...operationFields.values(),
  ["a sign-in name", normalSignInName],
  ["a password", normalText],
  ["an amount of the portal", (text) => baseUnitsOf(text, 18), ["1", "0", "x"], ["0.", "0", "x"]],
  ["an extended public key", keyInValue, ...repeated("xprv", "BEGIN ", "http://", "word ")],
  ["the page after signing in", nextPath, ["/", "../", ""], ["/portal/a/", "%2", ""]],
  ["an address", toChecksummed, ["0x", "0", ""], ["", "aA", ""]],
  ["a range of addresses", canonicalRange, ["", "::", ""], ["1.1.1.1/", "1", ""], ["", "0.", ""]],
  ["a URL", (text) => [parseUrl(text), isUrl(text)], ...values],
  [
    "a shop",
    (text) => isShop({ name: text, accent: text, logo: text, website: text, frameOrigins: [text] }),
    ...values
  ],
  ["a word that may be mistyped", (text) => closest(text, ["amount", "currency"]), ["amount", "amount", ""]],
  ["a text for a terminal", shown, ["", "\u200e", ""]]
]

const price = (of: (get: Get) => PriceSource, json: (price: unknown) => unknown) => (text: string) =>
  [text, [text], Either.getOrElse(parseWithTexts(text), () => text)].map((one) =>
    run(of(() => Effect.succeed({ json: json(one), observedAt: 0 })).read)
  )
const streamed = async function* (text: string) {
  yield Buffer.from(text)
}
const call = { method: "eth_call", params: [] }
const failed: MakeRpcError = (reason, detail, more) => new RpcError({ host: "", method: "", reason, detail, ...more })
const bounds = { bytes: 1e9, depth: 1e9, values: 1e9 }
const rpcDecoders = [Hash, Address, LogsBloom].map((schema) => decoder(schema))
const rpcNumbers = [decoder(Word), decoder(Quantity), decoder(Count)]

const responses: ReadonlyArray<Parser> = [
  ...Object.entries(responseHeaders).map(
    ([name, parse]): Parser => [`the header ${name}`, parse, ["Mon, ", "(", ""], ["", "Mon ", ""], ["1", "0", "x"]]
  ),
  [
    "the bytes of a provider",
    (text) => new JsonScan(bounds).take(Buffer.from(text)),
    ['"', '\\"', ""],
    ["", "[0,", ""]
  ],
  [
    "a value of a provider",
    (text) => [...rpcDecoders, ...rpcNumbers].map((decode) => decode(text)),
    ["0x", "0", ""],
    ["0x", "f", "g"]
  ],
  [
    "an error of a provider",
    (text) => [classifyError(text), resultsInOrder([call], [{ id: 1, error: { message: text } }], failed)],
    ...repeated("historical state ", "block range ", "range 1", "method "),
    ["limited to ", "1,", ""],
    ...repeated("0x1 ", "try with this block range [0x1, ")
  ],
  ["a status page of a provider", (text) => badStatus(502, text, undefined, undefined, "eth_call", failed)],
  ["a response of a provider", (text) => readResponse(streamed(text), bounds), ["[", "0,", "0]"], ["[1", "0", "]"]],
  ["a failure of a provider", (text) => readErrorResponse(streamed(text)), ["[", "0,", "0]"], ["[1", "0", "]"]],
  [
    "a price of Coinbase",
    price(
      (get) => makeCoinbase(get, "", ["ETH"]),
      (ETH) => ({ data: { currency: "USD", rates: { ETH } } })
    )
  ],
  [
    "a price of Kraken",
    price(
      (get) => makeKraken(get, "", ["ETH"]),
      (a) => ({ error: [], result: { XETHZUSD: { a: [a], b: [a] } } })
    )
  ],
  ["an address of DNS", parseAddress, ...repeated("1:", "0."), ["::ffff:", "1.", ""]],
  ["the user and password of a URL", percentDecoded, ["%", "%2", "%25"]]
]

/** Looks at each character once. */
const lookAt = (text: string): number => {
  let sum = 0
  for (let at = 0; at < text.length; at++) sum = (sum * 31 + text.charCodeAt(at)) | 0
  return sum
}

const short = 16 * KiB
const long = 64 * KiB
/** Longer than any request may be. */
const longer = 256 * KiB
const plain = harmlessText(long)

/**
 * A parser may take this many times as long as it takes for a harmless text of the same length, or as looking at each of
 * its characters takes if that is longer: a few milliseconds for what a request may have. Of quadratic time it would be tens of
 * thousands.
 */
const mostTimes = 100
/**
 * Four times the text takes 4 times as long if the time is linear, 16 times if it is quadratic. Where garbage is collected
 * for the longer text alone it may be more: then the next step of 4 decides.
 */
const mostGrowth = 12
/** Times as long as harmless work from which on growth can be measured. */
const measurable = 25
const tries = 12
/** Milliseconds after which two tries are enough. */
const patience = 500

/**
 * The best time of several tries, which end early when it `suffices`. Processor time: what is longer than the system's time slice
 * would take a multiple on a busy machine, and harmless work, which fits into one, would not.
 */
const bestOf = async (work: () => unknown, suffices: (time: number) => boolean = () => false): Promise<number> => {
  let best = Number.POSITIVE_INFINITY
  let spent = 0
  for (let i = 0; i < tries && !suffices(best) && (i < 2 || spent < patience); i++) {
    const began = process.cpuUsage()
    await work()
    const { system, user } = process.cpuUsage(began)
    const time = (user + system) / 1_000
    best = Math.min(best, time)
    spent += time
  }
  return best
}

/** What is wrong with the time that a parser takes for a text, given by its length. */
const fault = async (
  parse: Parser[1],
  textOf: (length: number) => string,
  harmless: number
): Promise<string | undefined> => {
  const time = (length: number, suffices?: (time: number) => boolean) => {
    const text = textOf(length)
    return bestOf(() => parse(text), suffices)
  }
  // No bad moment of the machine lasts for so long.
  const isBeyondDoubt = (best: number) => Number.isFinite(best) && best > 20 * mostTimes * harmless
  const taken = await time(long, (best) => best < measurable * harmless || isBeyondDoubt(best))
  const times = taken / harmless
  if (times < measurable) return undefined
  if (times > mostTimes) return `${times.toFixed(0)} times as long as harmless work`
  const growth = taken / (await time(short))
  if (growth < mostGrowth) return undefined
  const next = (await time(longer, (best) => best < mostGrowth * taken)) / taken
  return next < mostGrowth
    ? undefined
    : `${growth.toFixed(1)} and ${next.toFixed(1)} times as long for 4 times the text`
}

const faultsOf = async ([name, parse]: Parser, texts: (length: number) => ReadonlyArray<NamedText>) => {
  const harmless = await bestOf(async () => [lookAt(plain), await parse(plain)])
  const faults: Array<string> = []
  for (const [i, [what, text]] of texts(long).entries()) {
    // Vitest notices a worker only in a turn of the event loop.
    await eventLoopTurn()
    const measure = () => fault(parse, (length) => (length === long ? text : (texts(length)[i]?.[1] ?? "")), harmless)
    // A busy machine has bad moments of its own; what is not linear is found again.
    const found = (await measure()) && (await measure())
    if (found !== undefined) faults.push(`${name}, ${what}: ${found}`)
  }
  return faults
}

const named = (parsers: ReadonlyArray<Parser>) => parsers.map((parser) => [parser[0], parser] as const)

describe("64 KiB of the worst take linear time in", () => {
  it.each(named(bodyParsers))("%s", async (_, parser) => expect(await faultsOf(parser, worstBodies)).toEqual([]))

  it.each(named([...requests, ...texts, ...responses]))("%s", async (_, parser) => {
    const [, , ...own] = parser
    expect(await faultsOf(parser, worstTexts(own))).toEqual([])
  })
})

it.each<readonly [name: string, parse: Parser[1], worst: Shape]>([
  ["zeros at the end", (text) => text.replace(/0+$/, ""), ["", "0", "1"]],
  ["a string that does not end", (text) => /"(?:[^"\\]|\\.)*"x/.exec(text), ["", '\\"', ""]],
  ["combining marks", (text) => text.normalize("NFKC"), ["", "\u0301\u0316", ""]]
])("a parser is found to take longer: %s", async (_, parse, shape) => {
  const found = await faultsOf(["it", parse], (length) => worstTexts([shape])(length).slice(-1))
  expect(found).toHaveLength(1)
})

/** The names of headers that a folder's code reads. */
const headersIn = (...folders: ReadonlyArray<string>): ReadonlyArray<string> => {
  const code = folders.flatMap((folder) =>
    readdirSync(join(root, "src", folder), { encoding: "utf8", recursive: true })
      .filter((file) => /\.tsx?$/.test(file))
      .map((file) => readFileSync(join(root, "src", folder, file), "utf8"))
  )
  const names = code.flatMap((text) =>
    Array.from(
      text.matchAll(/\bheaders(?:\.(?!right\b)([a-z]+)\b(?!\()|\["([a-z-]+)"\])|headerOf\(\w+, "([a-z-]+)"\)/g),
      ([, dotted, quoted, asked]) => dotted ?? quoted ?? asked ?? ""
    )
  )
  return [...new Set(names)].toSorted()
}

describe("each header that is read stands in the table", () => {
  it("of requests", () => {
    const known = [...Object.keys(requestHeaders), ...comparedHeaders].toSorted()
    expect(known).toEqual(expect.arrayContaining([...headersIn("Http", "Pages", "Portal", "Checkout", "Events")]))
  })

  it("of responses", () => {
    const known = Object.keys(responseHeaders).toSorted()
    expect(known).toEqual(headersIn("Chains/rpc", "Quotes", "Webhooks", "Conditions"))
  })
})
