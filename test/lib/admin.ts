import { Effect } from "effect"
import { makeClient } from "./api.ts"
import type { Daemon } from "./daemon.ts"

/** A client of a daemon's listener for the operator. */
export const adminOf = (daemon: Daemon) =>
  Effect.gen(function* () {
    const { annotations } = yield* daemon.logged("listening for the operator", { host: "127.0.0.1" })
    return yield* makeClient(`http://127.0.0.1:${annotations["port"]}`)
  })
