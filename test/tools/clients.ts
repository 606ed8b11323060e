import { spawnSync } from "node:child_process"
import { copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { NodeFileSystem } from "@effect/platform-node"
import { Effect } from "effect"
import { request } from "undici"
import { EventKind, type WebhookEvent } from "../../src/Domain/Event.ts"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import type { LocalChain } from "../../src/Sandbox/LocalChain.ts"
import { type Receiver, startReceiver } from "../../src/Sandbox/Receiver.ts"
import { confirmations, type Daemon, localChain, makeHome, mineAt, pay, serve } from "../lib/daemon.ts"
import { start, tilldJson } from "../lib/processes.ts"

// HTTP clients and JSON parsers of other languages against a running daemon with the usual limits. Each creates, reads,
// lists and repeats payments, registers webhooks, and runs into every error. Then they read the webhooks of a day on which
// payments had every fate, and texts that are odd and legal.

const secret = "whsec_0123456789abcdef"

const say = (line: string) => Effect.sync(() => void process.stdout.write(`${line}\n`))

/** For a merchant's own data. The API may refuse a text; what it takes, every client must be able to read. */
const oddTexts: ReadonlyArray<string> = [
  ...'🎂 \u0000 \u0000*\u0000protected \u007f \u0085 \u2028 \ufeff \ufffe \u202e e\u0301 \ud83c \udf82 " \\ </script>'.split(
    " "
  ),
  ...["__proto__", "constructor", "a.b", "$ref", "1", " ", "\t"]
]

const order = { chain: "base", currency: "USDC", amount: "1000000" } as const

/** Creates payments of every fate, and writes each webhook and a page of the list into `folder`. */
const day = Effect.fnUntraced(function* (daemon: Daemon, chain: LocalChain, receiver: Receiver, folder: string) {
  const seen = new Set<string>()
  const takeOne = Effect.map(receiver.take, ({ body, headers, n }) => {
    writeFileSync(join(folder, `${n}.json`), body)
    writeFileSync(join(folder, `${n}.signature`), String(headers["x-service-signature"]))
    const { data, event } = JSON.parse(body.toString("utf8")) as WebhookEvent
    seen.add(`${event} ${data.id}`)
  })
  const until = (kind: EventKind, { id }: PaymentObject) =>
    Effect.iterate(undefined, { while: () => !seen.has(`${kind} ${id}`), body: () => takeOne }).pipe(
      Effect.timeoutFail({ duration: "1 minute", onTimeout: () => `no ${kind} of ${id}` }),
      Effect.orDieWith((late) => late)
    )
  const paid = (payment: PaymentObject, amount: bigint) =>
    Effect.zipRight(pay(chain, { ...payment, amount: String(amount) }), chain.mine())

  const hook = { url: `${receiver.url}/day`, events: EventKind.literals, secret }
  yield* daemon.call("POST", "/v1/webhooks", hook)
  for (const [i, text] of oddTexts.entries()) {
    for (const odd of [
      { merchantRef: `odd ${i}${text}` },
      { merchantRef: `odd ${i}`, metadata: { a: [{ [text]: text }] } }
    ]) {
      const { body, status } = yield* daemon.call<PaymentObject>("POST", "/v1/payments", { ...order, ...odd })
      if (status === 201) yield* until("payment.created", body)
      else if (status !== 400) return yield* Effect.dieMessage(`${JSON.stringify(odd)}: ${status}`)
    }
  }
  const unpaid = yield* daemon.create({ ...order, expiresIn: 60 })
  const short = yield* daemon.create({ ...order, expiresIn: 60 })
  const over = yield* daemon.create(order)
  const parts = yield* daemon.create(order)
  yield* paid(short, 500_000n)
  yield* paid(over, 2_000_000n)
  yield* paid(parts, 250_000n)
  yield* until("payment.detecting", parts)
  yield* paid(parts, 500_000n)
  yield* until("payment.updated", parts)
  yield* chain.mine(confirmations)
  yield* until("payment.confirmed", over)
  yield* until("payment.exception", over)
  yield* mineAt(chain, Math.floor(Date.parse(short.expiresAt) / 1000) + 1, confirmations)
  yield* until("payment.expired", unpaid)
  yield* until("payment.failed", short)
  const page = yield* Effect.promise(() =>
    request(`${daemon.url}/v1/payments?limit=100`, { headers: { "x-api-key": daemon.key } }).then(({ body }) =>
      body.text()
    )
  )
  writeFileSync(join(folder, "list.page"), page)
})

/** `here`: the folder with the installed tools; `folder` is for temporary files, and has the document's types. */
const runClients = Effect.fnUntraced(function* (here: string, folder: string) {
  const webhooks = join(folder, "webhooks")
  mkdirSync(webhooks)
  const caFile = join(folder, "ca.pem")
  const receiver = yield* startReceiver({ caFile }).pipe(Effect.provide(NodeFileSystem.layer))
  const chain = yield* localChain("base")
  const home = yield* makeHome({ chains: new Map([["base", chain]]), caFile })
  writeFileSync(home.config, readFileSync(home.config, "utf8").replace("per_minute = 1000000", "per_minute = 100"))
  const daemon = yield* serve(home)
  yield* day(daemon, chain, receiver, webhooks)

  const source = (file: string) => join(here, "clients", file)
  const python = ["python3", "/usr/bin/python3"].find((one) => spawnSync(one, ["-c", "import requests"]).status === 0)
  const clients = [
    ["java", "default-jdk-headless", "java", ["-Dfile.encoding=UTF-8", source("Client.java")]],
    ["python3", "python3", python ?? "python3", ["-B", source("client.py"), webhooks]],
    ["php", "php-cli", "php", [source("client.php"), webhooks]],
    ["openapi-fetch", "nodejs", process.execPath, [join(folder, "fetch.mjs")]]
  ] as const
  let failed = 0
  for (const [name, debian, command, args] of clients) {
    if (spawnSync(command, ["--version"]).error !== undefined) {
      yield* say(`skipped: ${name} is not there (apt-get install ${debian})`)
      continue
    }
    const config = ["--config", home.config]
    const { id } = yield* tilldJson<{ id: string }>([
      "accounts",
      "create",
      "--name",
      name,
      "--shared-wallet",
      ...config
    ])
    const made = yield* tilldJson<{ key: string }>([
      "keys",
      "create",
      "--mode",
      "test",
      "--name",
      name,
      "--account",
      id,
      ...config
    ])
    const env = { SHOP_URL: daemon.url, SHOP_KEY: made.key, SHOP_SECRET: secret, SHOP_HOOK: receiver.url }
    const running = yield* start(command, args, { env })
    const { code, stderr, stdout } = yield* running.ended
    yield* say(`${stdout}${stderr}${name}: ${code === 0 ? "passed" : `FAILED with ${code}`}`)
    if (code !== 0) failed++
  }
  return failed === 0
}, Effect.scoped)

/** Checks `fetch.mjs` by the types that are in `folder`, and runs it there beside the clients of other languages. */
export const clientChecks = (root: string, here: string, folder: string) => {
  const compile = ["--noEmit", "--strict", "--allowJs", "--checkJs", "--target", "ES2022", "--module", "NodeNext"]
  const types = () => {
    symlinkSync(join(here, "node_modules"), join(folder, "node_modules"))
    copyFileSync(join(here, "clients/fetch.mjs"), join(folder, "fetch.mjs"))
    const tsc = join(root, "node_modules/.bin/tsc")
    const args = [
      ...compile,
      "--types",
      "node",
      "--typeRoots",
      join(root, "node_modules/@types"),
      join(folder, "fetch.mjs")
    ]
    return spawnSync(tsc, args, { stdio: ["ignore", "inherit", "inherit"] }).status === 0
  }
  return [
    ["the types of openapi-fetch", types],
    ["clients", () => Effect.runPromise(runClients(here, folder))]
  ] as const
}
