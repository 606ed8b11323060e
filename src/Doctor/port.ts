import { connect } from "node:net"
import { Effect } from "effect"
import type { SettingsShape } from "../Settings.ts"
import { type Finding, fail } from "./Finding.ts"

const deadline = "1 second"
/** What listens on all addresses answers at this machine's own. */
const everywhere: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" }

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
