/**
 * The stream of a checkout page's versions, as server-sent events: whenever the page would show something else, its new
 * version and nothing more. It ends when the payment has ended.
 */
import { Effect, Option, Stream } from "effect"
import type { Payment } from "../Domain/Payment.ts"
import { waitAtMost } from "../Domain/waitAtMost.ts"
import type { Outbox } from "../Events/Outbox.ts"
import type { OpenStreams } from "../Pages/OpenStreams.ts"
import type { StoreUnavailable } from "../Sql.ts"
import type { ReadPayment } from "./readPayment.ts"
import { type CheckoutView, isFinal, versionOf } from "./view.ts"

/**
 * Poll interval of a stream without an event: while confirmations grow, and otherwise for the deadline and a lagging
 * chain. Each poll is a keep-alive too.
 */
const lookInterval = ({ state }: CheckoutView) => (state.kind === "seen" ? "3 seconds" : "15 seconds")

/** A comment, so that proxies and browsers can tell a quiet stream from a dead one. */
const keepAlive = ":\n\n"

interface Shown {
  readonly version: string
  readonly isLast: boolean
}

/** The versions of a payment's page from now on. `client` is counted in `open` until the stream ends. */
export const versionsOf = (
  token: string,
  { id }: Payment,
  client: string,
  read: ReadPayment,
  outbox: Outbox["Type"],
  open: OpenStreams
): Stream.Stream<string> => {
  const follow = Effect.gen(function* () {
    const changed = yield* outbox.listen(id)

    const next = (shown: Shown | undefined): Effect.Effect<Option.Option<readonly [string, Shown]>, StoreUnavailable> =>
      Effect.gen(function* () {
        if (shown?.isLast === true) return Option.none()
        const stored = yield* read.find(token)
        if (stored === undefined) return Option.none()
        const view = yield* read.view(stored)
        const version = versionOf(view)
        if (version !== shown?.version) {
          return Option.some([`data: ${version}\n\n`, { version, isLast: isFinal(view) }] as const)
        }
        const woken = yield* waitAtMost(changed, lookInterval(view))
        return Option.isSome(woken) ? yield* next(shown) : Option.some([keepAlive, shown] as const)
      })
    return Stream.unfoldEffect(undefined as Shown | undefined, next)
  })
  return open
    .counted(id, client, Stream.unwrapScoped(follow))
    .pipe(
      Stream.catchTag("StoreUnavailable", (error) => Stream.drain(Stream.fromEffect(Effect.logWarning(error.message))))
    )
}
