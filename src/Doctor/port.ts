import { connect } from "node:net"
import { Effect, Schema } from "effect"
import { makeHttpClient, readBody, readText } from "../lib/httpClient.ts"
import type { SettingsShape } from "../Settings.ts"
import type { Silent } from "./daemon.ts"
import { type Finding, fail } from "./Finding.ts"

const deadline = "1 second"
/** Of a readiness report. */
const maxBytes = 1024 * 1024
/** A listener on all addresses answers at this machine's own. */
const everywhere: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" }

const Readiness = Schema.Struct({
  workers: Schema.Array(Schema.Struct({ name: Schema.String, ready: Schema.Boolean }))
})

/**
 * The daemon whose database was removed or moved with its other files, so that neither its socket nor its lock can be
 * found: it still listens at its port, and reports that its store takes no writes. Undefined where none does.
 */
export const withLostFiles = ({ database, server: { host, port } }: SettingsShape): Effect.Effect<Silent | undefined> =>
  Effect.gen(function* () {
    const name = everywhere[host] ?? host
    const url = new URL(`http://${name.includes(":") ? `[${name}]` : name}:${port}/readyz`)
    const client = yield* makeHttpClient(deadline)
    const response = yield* client.send({ url, method: "GET", maxBytes })
    return yield* readBody(response, async (body): Promise<unknown> => JSON.parse(await readText(body, maxBytes)))
  }).pipe(
    Effect.scoped,
    Effect.flatMap(Schema.decodeUnknown(Readiness)),
    Effect.timeout(deadline),
    Effect.map(({ workers }) => workers.some(({ name, ready }) => name === "store" && !ready)),
    Effect.orElseSucceed(() => false),
    Effect.map((isLost) =>
      isLost
        ? {
            silent:
              `a tilld listens on ${host}:${port}, and its database is not at ${database.path}: that was removed or ` +
              "moved while tilld has it open, and only this process has it",
            remedy:
              "put the same files back, and tilld goes on; if they were deleted, copy the database and its -wal out of " +
              "/proc/PID/fd before tilld is stopped (ss -ltnp shows PID)"
          }
        : undefined
    )
  )

/** Whether something else listens where a start would. For where no daemon runs. */
export const examinePort = ({ server: { host, port } }: SettingsShape): Effect.Effect<ReadonlyArray<Finding>> =>
  Effect.async<boolean>((resume) => {
    const socket = connect({ host: everywhere[host] ?? host, port })
    socket.once("connect", () => resume(Effect.succeed(true))).once("error", () => resume(Effect.succeed(false)))
    return Effect.sync(() => socket.destroy())
  }).pipe(
    Effect.timeoutTo({ duration: deadline, onTimeout: () => false, onSuccess: (isTaken) => isTaken }),
    Effect.map((isTaken) =>
      isTaken
        ? [
            fail(
              "port",
              `another process listens on ${host}:${port}`,
              "end it (ss -ltnp shows it), or change server.port"
            )
          ]
        : []
    ),
    Effect.when(() => port !== 0),
    Effect.map((found) => (found._tag === "Some" ? found.value : []))
  )
