import { Duration, Effect } from "effect"
import { RpcError } from "../rpc/RpcError.ts"
import type { Provider } from "./Providers.ts"

/** How long a second provider may take for one part of its evidence: the watcher reads nothing new meanwhile. */
const longest = Duration.minutes(1)

/** Fails as `timeout` where another provider than the serving one takes too long, though each of its calls is in time. */
export const inTime = <A, E, R>({ client: { host } }: Provider, method: string, evidence: Effect.Effect<A, E, R>) =>
  Effect.timeoutFail(evidence, {
    duration: longest,
    onTimeout: () =>
      new RpcError({ host, method, reason: "timeout", detail: `it took more than ${Duration.format(longest)} in all` })
  })
