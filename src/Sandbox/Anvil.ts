import { type ChildProcess, spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Data, Deferred, Duration, Effect } from "effect"
import { PortInUse } from "./local.ts"

/** The Anvil binary of this platform is not installed, or cannot be run. */
export class AnvilMissing extends Data.TaggedError("AnvilMissing")<{
  /** The package or the path that was looked for. */
  readonly wanted: string
  readonly why: string
}> {
  override get message() {
    return `The local chain's binary ${this.wanted} is missing or cannot be run (${this.why}): run \`npm install --include=dev --include=optional\` in the project's folder (Anvil is a development dependency with one package per platform).`
  }
}

/** Anvil ended, or timed out, before it listened. */
export class AnvilNotStarted extends Data.TaggedError("AnvilNotStarted")<{
  readonly chain: string
  readonly reason: string
}> {
  override get message() {
    return `The local chain ${this.chain} did not start: ${this.reason}`
  }
}

/** How to run one Anvil process. */
export interface AnvilOptions {
  /** The chain's name, for messages only. */
  readonly chain: string
  readonly chainId: number
  /** 0 or absent: a free port. */
  readonly port?: number
  /** Default 127.0.0.1. */
  readonly host?: string
  /** Seconds between blocks; absent: a block only when `mine` asks for one. */
  readonly blockTime?: number
  /**
   * How many blocks back balances and calls can be read and a reorg can reach, default 64. Anvil copies its whole state
   * for each: at one block a second and 64, a chain has grown to 350 MB after five hours.
   */
  readonly history?: number
  /**
   * Default `shanghai`: from `cancun` on, the system contracts write to the state in every block, which makes mining
   * ten to forty times slower (2,000 blocks: 0.3 s against 3 to 22 s).
   */
  readonly hardfork?: string
  /**
   * Out of reach of Ctrl-C in the terminal, so that its owner ends it last; it ends by itself where its owner was killed.
   * Default false: a child as any other.
   */
  readonly detached?: boolean
  /** The binary to run; absent: the installed package's. */
  readonly binary?: string
}

// A start takes 40 to 250 ms; five at once on a busy machine a second.
const startDeadline = Duration.seconds(15)

// The package's own launcher is a Node script that leaves the chain running when it is killed: run the binary itself.
const installedBinary = Effect.suspend(() => {
  const architecture = process.arch === "x64" ? "amd64" : process.arch
  const wanted = `@foundry-rs/anvil-${process.platform}-${architecture}`
  return Effect.try({
    // The platform's package is a dependency of the launcher package, and some package managers resolve it only from there.
    try: () =>
      createRequire(createRequire(import.meta.url).resolve("@foundry-rs/anvil/package.json")).resolve(
        `${wanted}/bin/anvil${process.platform === "win32" ? ".exe" : ""}`
      ),
    catch: () => new AnvilMissing({ wanted, why: "not installed" })
  })
})

// A reorg makes a folder for old states, by default in the user's home, and Anvil never removes it.
const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "tilld-chain-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

const argumentsOf = (options: AnvilOptions, host: string, folder: string): ReadonlyArray<string> => [
  ...["--host", host, "--port", String(options.port ?? 0), "--chain-id", String(options.chainId)],
  ...(options.blockTime === undefined ? ["--no-mining"] : ["--block-time", String(options.blockTime)]),
  ...["--hardfork", options.hardfork ?? "shanghai"],
  // `safe` and `finalized` follow the head at one and two blocks.
  ...["--slots-in-an-epoch", "1"],
  // Without a bound, old states are written to files endlessly.
  ...["--prune-history", String(options.history ?? 64), "--cache-path", folder],
  // Enough ether for all payments of a test.
  ...["--balance", "1000000"]
]

/** Runs its arguments until they end, or the other end of standard input is closed: whoever holds that has ended. */
const leashed = `exec 3<&0; "$0" "$@" </dev/null 3<&- & child=$!
{ cat <&3; kill -9 "$child"; } >/dev/null 2>&1 & wait "$child"`

const launch = (
  binary: string,
  options: AnvilOptions,
  host: string,
  folder: string,
  listening: Deferred.Deferred<number, AnvilMissing | PortInUse | AnvilNotStarted>,
  ended: Deferred.Deferred<string>
) => {
  const { detached = false } = options
  const command = [binary, ...argumentsOf(options, host, folder)]
  const [file = binary, ...args] = detached ? ["/bin/sh", "-c", leashed, ...command] : command
  const child = spawn(file, args, { stdio: ["pipe", "pipe", "pipe"], detached })
  let said = ""
  let complained = ""
  const hear = (chunk: string) => {
    said += chunk
    const port = /^Listening on .*:(\d+)$/m.exec(said)?.[1]
    if (port === undefined) return
    Deferred.unsafeDone(listening, Effect.succeed(Number(port)))
    // Still read, and dropped: Anvil would hang on a full pipe.
    child.stdout.off("data", hear).resume()
  }
  child.stdout.setEncoding("utf8").on("data", hear)
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    complained = (complained + chunk).slice(-2000)
  })
  child.once("error", ({ message }) =>
    Deferred.unsafeDone(listening, Effect.fail(new AnvilMissing({ wanted: binary, why: message })))
  )
  child.once("close", (code, signal) => {
    const reason = `${signal ?? `exit code ${code}`}${complained === "" ? "" : `: ${complained.trim()}`}`
    const failure = /address already in use|os error 10048/i.test(complained)
      ? new PortInUse({ host, port: options.port ?? 0, wantedBy: `the local chain ${options.chain}` })
      : new AnvilNotStarted({ chain: options.chain, reason })
    Deferred.unsafeDone(ended, Effect.succeed(reason))
    Deferred.unsafeDone(listening, Effect.fail(failure))
  })
  return child
}

const kill = (child: ChildProcess, { detached = false }: AnvilOptions) =>
  Effect.async<void>((resume) => {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return resume(Effect.void)
    // Not at the shell's "exit": the chain has its pipes, and its port. And SIGTERM does not reach a stopped process.
    child.once("close", () => resume(Effect.void))
    process.kill(detached ? -child.pid : child.pid, "SIGKILL")
  })

/**
 * Runs Anvil until the scope closes. Succeeds once it listens: its own line says so and names the port, which is
 * surer than asking the port, where another process may answer.
 */
export const startAnvil = Effect.fn("Anvil.start")(function* (options: AnvilOptions) {
  const { chain, host = "127.0.0.1" } = options
  const binary = options.binary ?? (yield* installedBinary)
  const folder = yield* temporaryFolder
  const listening = yield* Deferred.make<number, AnvilMissing | PortInUse | AnvilNotStarted>()
  const ended = yield* Deferred.make<string>()
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => launch(binary, options, host, folder, listening, ended)),
    (child) => kill(child, options)
  )
  const port = yield* Deferred.await(listening).pipe(
    Effect.timeoutFail({
      duration: startDeadline,
      onTimeout: () =>
        new AnvilNotStarted({ chain, reason: `it did not listen within ${Duration.format(startDeadline)}` })
    })
  )
  /** `ended`: waits until the process has ended, and says how. */
  return { pid: child.pid ?? 0, host, port, ended: Deferred.await(ended) }
})
