import { Cause, type Context, Data, Effect } from "effect"
import type { Writer } from "../../Sql.ts"
import type { RpcClient } from "../rpc/Rpc.ts"
import { RpcError } from "../rpc/RpcError.ts"

/** A defect inside a command to the store: not of a provider's making. */
class InStore extends Data.Error<{ readonly cause: unknown }> {}

/** The writer, whose defects end the process whatever they are. */
export const storeDefectsAsDefects = (writer: Context.Tag.Service<Writer>): Context.Tag.Service<Writer> => ({
  write: (command) => Effect.catchAllDefect(writer.write(command), (cause) => Effect.die(new InStore({ cause })))
})

/** What the log has of it, so that it can be told from a provider's usual failures. */
export const defectMessage = "an answer could not be handled"

/** What the language throws where a value is not what code takes it for. */
const isOfValues = (defect: unknown): boolean =>
  defect instanceof RangeError || defect instanceof TypeError || defect instanceof SyntaxError

/**
 * Reads from a provider. Every answer is checked before it is used; should one get through that code cannot handle, that
 * is the provider's failure and the log's matter, and neither other chains nor other providers have any harm of it.
 */
export const providerDefectsAsErrors =
  (client: RpcClient) =>
  <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E | RpcError, R> =>
    Effect.catchAllDefect(work, (defect) =>
      isOfValues(defect)
        ? Effect.zipRight(
            Effect.logError(defectMessage).pipe(
              Effect.annotateLogs({ provider: client.host, cause: Cause.pretty(Cause.die(defect)) })
            ),
            new RpcError({ host: client.host, method: "an answer", reason: "garbage", detail: String(defect) })
          )
        : Effect.die(defect)
    )
