import { rmSync, writeFileSync } from "node:fs"
import { basename, dirname, join, relative } from "node:path"
import { NodeHttpClient } from "@effect/platform-node"
import { Console, Data, Duration, Effect, Layer, Redacted } from "effect"
import { appLayer } from "../App.ts"
import { linkPath, makeLink } from "../Auth/loginLinks.ts"
import { defaultAccount, Keys } from "../Auth.ts"
import { permissions } from "../Domain/ApiKey.ts"
import { type ChainName, chainNames } from "../Domain/Chain.ts"
import { nativeToken, PaymentCurrency } from "../Domain/Currency.ts"
import { workers } from "../main.ts"
import { markFile } from "../Payments/addresses/IndexMark.ts"
import { Payments } from "../Payments.ts"
import { type Authority, makeAuthority } from "../Sandbox/Authority.ts"
import { demo as runDemo } from "../Sandbox/demo.ts"
import { freePort } from "../Sandbox/freePort.ts"
import { type LocalChain, startLocalChain } from "../Sandbox/LocalChain.ts"
import { defaultSandboxConfig, hasOnlyLocalChains, localPort } from "../Sandbox/local.ts"
import { startPostgres } from "../Sandbox/PostgresServer.ts"
import { startReceiver } from "../Sandbox/Receiver.ts"
import { HttpServer } from "../Server.ts"
import { sandboxFolder } from "../Settings/indexMarkFolder.ts"
import { load, makeMasterKeyFile, type SettingsShape, type SettingsSource } from "../Settings.ts"
import * as InstanceLock from "../Sql/InstanceLock.ts"
import * as Sql from "../Sql.ts"
import { Patience } from "../Telemetry/patience.ts"
import { complain } from "./Output.ts"
import { UsageError } from "./options.ts"

/** A local chain that the daemon watches. */
interface RunningChain extends LocalChain {
  readonly name: ChainName
}

type ShownChain = Pick<RunningChain, "name" | "url" | "chainId" | "tokens">

/** A sandbox that is up. */
export interface Sandbox {
  /** Base of the API. */
  readonly url: string
  readonly apiKey: string
  /** A link that signs in to the portal, once. */
  readonly portal: string
  /** A payment's id and the URL of its checkout page. */
  readonly checkout?: { readonly id: string; readonly url: string }
  readonly chains: ReadonlyArray<ShownChain>
  /** The words that run this program with the sandbox's configuration: a command and its options follow. */
  readonly program: string
  /** Path of the configuration. */
  readonly config: string
  /** Files with a certificate for localhost and its private key. */
  readonly certificates: { readonly certificate: string; readonly key: string }
}

const describe = ({ chainId, name, tokens, url }: ShownChain): string => {
  const coin = nativeToken(name)
  const taken = PaymentCurrency.literals.filter((currency) => currency === coin || currency in tokens).join(" ")
  const quoted = coin === "MATIC" ? " (MATIC is quoted, not taken)" : ""
  return `  ${name.padEnd(10)}${url}   chain id ${chainId}   ${taken}${quoted}`
}

/** Shell commands that create an invoice, pay it and show its end. */
const example = ({ apiKey, program, url }: Sandbox): string => `Ask for 25.00 EUR:

  curl -sS ${url}/v1/invoices \\
    -H 'X-API-Key: ${apiKey}' \\
    -H 'Content-Type: application/json' \\
    -d '{"merchantRef":"order-1","price":{"amount":"25.00","currency":"EUR"}}'

Open the "checkoutUrl" of the answer in a browser, and choose how to pay. Then pay what was chosen, with the "id" of the
answer; --help shows how to pay too little, too much, or with the wrong token:

  ${program} sandbox pay inv_…

See it paid, a few blocks later:

  curl -sS ${url}/v1/invoices -H 'X-API-Key: ${apiKey}'

Get its events, as webhooks, at a server of yours on this machine:

  TILLD_API_KEY=${apiKey} ${program} listen --api-url ${url} --forward-to http://localhost:3000/hook
`

/** The running parts and their addresses. */
export const overview = ({
  apiKey,
  chains,
  config,
  portal,
  program,
  url
}: Sandbox): string => `${chains.map(describe).join("\n")}
  API       ${url}/v1
  test key  ${apiKey}
  portal    ${portal}
            (works once, within 10 minutes; another one: ${program} login --config ${config})
`

/** The checkout page of a first payment. */
const look = ({ checkout, program }: Sandbox): string =>
  checkout === undefined
    ? ""
    : `Look at the checkout page of a payment of 25 USDC, and pay it while you look:

  ${checkout.url}
  ${program} sandbox pay ${checkout.id}

`

/** The first steps with the sandbox. */
export const instructions = (sandbox: Sandbox): string => {
  const { certificate, key } = sandbox.certificates
  return `${look(sandbox)}${example(sandbox)}
A webhook receiver on this machine must speak https: ${certificate} and ${key}
are a certificate for localhost that this sandbox trusts. Ctrl-C stops everything.
`
}

/** Seconds between the blocks of a local chain. */
const blockTime = 1
/** Blocks whose state a local chain keeps: each costs it memory. */
const history = 32

/** A local chain ended while the sandbox ran. */
class ChainEnded extends Data.TaggedError("ChainEnded")<{ readonly message: string }> {}

/** The sandbox deletes the database when it starts: it must be its own. */
const checkIsSandbox = (settings: SettingsShape, path: string) => {
  const folder = dirname(settings.database.path)
  const isSandbox = hasOnlyLocalChains(settings) && settings.chains.length === chainNames.length
  return basename(folder) === sandboxFolder && isSandbox
    ? Effect.succeed(folder)
    : new UsageError({
        message:
          `${path} is not a sandbox's configuration, and a sandbox deletes its database at every start: database.path ` +
          `must be in a folder named ${sandboxFolder}, and [chains] must have ${chainNames.join(", ")} in test mode, ` +
          "each at http://127.0.0.1:PORT, and nothing else"
      })
}

/** Deletes everything but the lock, which this process holds. */
const deleteDatabase = ({ database }: SettingsShape) =>
  Effect.sync(() => {
    for (const part of ["", "-wal", "-shm", ".sock"]) rmSync(`${database.path}${part}`, { force: true })
    rmSync(markFile(database), { force: true })
  })

/**
 * SIGHUP, a closed terminal, counts as Ctrl-C. The first signal ends this process in order. A second one, which npm and
 * impatient people send, must not end it before its chains.
 */
const handleSignals = Effect.acquireRelease(
  Effect.sync(() => {
    const ignore = () => undefined
    const interrupt = () => process.kill(process.pid, "SIGINT")
    process.on("SIGINT", ignore).on("SIGTERM", ignore).on("SIGHUP", interrupt)
    return { ignore, interrupt }
  }),
  ({ ignore, interrupt }) =>
    Effect.sync(() => process.off("SIGINT", ignore).off("SIGTERM", ignore).off("SIGHUP", interrupt))
)

const startChains = Effect.fn("sandbox.startChains")(function* (settings: SettingsShape) {
  let started = 0
  return yield* Effect.forEach(
    settings.chains,
    (chain) =>
      Effect.gen(function* () {
        const local = yield* startLocalChain({
          chain: chain.chain,
          chainId: chain.chainId,
          port: localPort(chain) ?? 0,
          blockTime,
          history,
          tokens: chain.tokens.map((token) => token.symbol),
          // Otherwise Ctrl-C in the terminal would end the chain before the daemon that reads it.
          detached: true
        })
        started += 1
        yield* complain(`  ${chain.chain} is up (${started} of ${settings.chains.length})`)
        return { name: chain.chain, ...local }
      }),
    { concurrency: "unbounded" }
  )
})

const failWhenItEnds = ({ ended, name }: RunningChain) =>
  Effect.flatMap(
    ended,
    (how) => new ChainEnded({ message: `The local chain ${name} ended (${how}), and the sandbox with it` })
  )

interface Certificates {
  readonly authority: Authority
  readonly ca: string
  readonly certificate: string
  readonly key: string
}

/** Certificates for webhook receivers on this machine: webhooks are sent to https only. */
const makeCertificates = Effect.fn("sandbox.makeCertificates")(function* (folder: string) {
  const authority = yield* makeAuthority
  const identity = yield* authority.issue(["localhost", "127.0.0.1", "::1"])
  const files = {
    ca: join(folder, "ca.pem"),
    certificate: join(folder, "localhost.pem"),
    key: join(folder, "localhost-key.pem")
  }
  writeFileSync(files.ca, authority.certificate)
  writeFileSync(files.certificate, identity.certificate)
  writeFileSync(files.key, identity.key, { mode: 0o600 })
  const certificates: Certificates = { authority, ...files }
  return certificates
})

/** How to run another command of this program with the sandbox's configuration. */
const programFor = (config: string): string => {
  const script = process.argv[1] ?? "tilld"
  const here = relative("", script)
  const named = config === defaultSandboxConfig ? "" : `TILLD_CONFIG='${config}' `
  return `${named}node ${here.startsWith("..") ? script : here}`
}

/** Links to its pages lead to the port that it has, whatever the configuration says of the public URL. */
const servedAt = (server: SettingsShape["server"]) =>
  Effect.map(server.port === 0 ? freePort : Effect.succeed(server.port), (port) => ({
    ...server,
    port,
    publicUrl: `http://${server.host}:${port}`
  }))

/** A link that signs an operator in to the portal. */
const portalLink = ({ publicUrl }: SettingsShape["server"]) =>
  Effect.map(
    makeLink({ name: "sandbox", role: "operator", account: undefined }),
    ({ token }) => publicUrl + linkPath(token)
  )

/** The checkout of a first payment, for a look. */
const firstCheckout = Effect.gen(function* () {
  const payments = yield* Payments
  const { object } = yield* payments.create(
    { account: defaultAccount, mode: "test" },
    { merchantRef: "sandbox-1", amount: 25_000_000n, currency: "USDC", chain: "base", expiresIn: 86_400 }
  )
  return { id: object.id, url: object.checkoutUrl }
})

const makeKey = Effect.gen(function* () {
  const keys = yield* Keys
  const { key } = yield* keys.create({
    account: defaultAccount,
    mode: "test",
    name: "sandbox",
    permissions,
    expiresIn: undefined
  })
  return Redacted.value(key)
})

/** The store in a PostgreSQL that is new. */
const storeIn = (postgres: NonNullable<SettingsShape["postgres"]>, env: SettingsSource["env"]) =>
  Effect.gen(function* () {
    const { takeTurn } = yield* Effect.promise(() => import("../Sql/postgres/turn.ts"))
    const { store } = yield* takeTurn(postgres, "sandbox", env, () => Effect.void)
    return store
  })

/**
 * Runs five new local chains and a daemon with a new database, and stops them together. With `demo` it makes and pays two
 * payments and ends; otherwise it runs until it is interrupted. Fails with `UsageError` where the configuration is not a
 * sandbox's, with `ChainEnded`, and as the demo and the daemon do.
 */
export const runSandbox = Effect.fn("sandbox.run")(function* (options: {
  source: SettingsSource
  demo: boolean
  postgres: boolean
}) {
  const configured = yield* load(options.source)
  const folder = yield* checkIsSandbox(configured, options.source.path)
  yield* handleSignals
  yield* InstanceLock.acquire(configured.database.path, "sandbox")
  yield* deleteDatabase(configured)
  yield* makeMasterKeyFile(configured.database.path)
  const certificates = yield* makeCertificates(folder)
  const postgres = options.postgres ? yield* startPostgres : undefined
  const settings: SettingsShape = {
    ...configured,
    postgres,
    node: { ...configured.node, name: "sandbox" },
    server: yield* servedAt(configured.server),
    webhooks: { ...configured.webhooks, extraCaFile: certificates.ca }
  }
  yield* complain(
    "Starting five local chains, and the contracts of their tokens. Chains and database are new at every start."
  )
  const chains = yield* startChains(settings)
  yield* complain("Starting the daemon.\n")
  const store =
    postgres === undefined ? Sql.layer(settings.database.path) : yield* storeIn(postgres, options.source.env)

  // Says at once that the port is taken.
  const listening = Layer.mapError(HttpServer.layer, (error) =>
    error._tag === "AddressUnavailable" ? new UsageError({ message: error.message }) : error
  )
  const session = Effect.gen(function* () {
    const apiKey = yield* makeKey
    yield* HttpServer
    const url = settings.server.publicUrl
    const portal = yield* portalLink(settings.server)
    const config = options.source.path
    const sandbox = { url, apiKey, portal, chains, certificates, config, program: programFor(config) }
    yield* Console.log(overview(sandbox))
    if (!options.demo) {
      const checkout = yield* firstCheckout
      return yield* Effect.zipRight(Console.log(instructions({ ...sandbox, checkout })), Effect.never)
    }
    const receiver = yield* startReceiver({ authority: certificates.authority })
    yield* runDemo({ url, apiKey, chains, receiver })
  })
  // The first to end, in whatever way, ends all. (An interrupted raceFirst does not wait for its two sides: the services
  // that they use would be closed before they have ended.)
  const end = yield* Effect.raceAll([
    Effect.exit(Effect.provide(session, listening)),
    Effect.exit(workers),
    ...chains.map((chain) => Effect.exit(failWhenItEnds(chain)))
  ]).pipe(
    Effect.provide(Layer.merge(appLayer(settings, options.source.env, store), NodeHttpClient.layer)),
    Effect.provideService(Patience, Duration.zero)
  )
  return yield* end
}, Effect.scoped)
