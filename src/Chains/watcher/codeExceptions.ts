import { Cause, type Context, Data, Effect } from "effect"
import type { Writer } from "../../Sql.ts"
import type { RpcClient } from "../rpc/Rpc.ts"
import { RpcError } from "../rpc/RpcError.ts"

/** A defect inside a database command: not caused by a provider. */
class StoreDefect extends Data.Error<{ readonly cause: unknown }> {}

/** The writer, with its defects marked: they end the process, whatever they are. */
export const storeDefectsAsDefects = (writer: Context.Tag.Service<Writer>): Context.Tag.Service<Writer> => ({
  write: (command) => Effect.catchAllDefect(writer.write(command), (cause) => Effect.die(new StoreDefect({ cause })))
})

/** The log message, which distinguishes this from a provider's usual failures. */
export const defectMessage = "an answer could not be handled"

/** The errors of JavaScript for a value of an unexpected type. */
const isValueError = (defect: unknown): boolean =>
  defect instanceof RangeError || defect instanceof TypeError || defect instanceof SyntaxError

/**
 * Turns defects of work on a provider's responses into errors of that provider. Every response is checked before it is
 * used. If one still breaks the code, it is logged and counts as the provider's failure: other chains and providers go
 * on.
 */
export const codeExceptionsAsErrors =
  (client: RpcClient) =>
  <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E | RpcError, R> =>
    Effect.catchAllDefect(work, (defect) =>
      isValueError(defect)
        ? Effect.zipRight(
            Effect.logError(defectMessage).pipe(
              Effect.annotateLogs({ provider: client.host, cause: Cause.pretty(Cause.die(defect)) })
            ),
            new RpcError({ host: client.host, method: "an answer", reason: "garbage", detail: String(defect) })
          )
        : Effect.die(defect)
    )
