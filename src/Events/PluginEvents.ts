/** What shop plugins are told of an invoice that they made: `src/Greenfield` says what, the outbox stores it. */
import { Context, Effect } from "effect"
import type { Owner } from "../Domain/Account.ts"
import type { InvoiceId } from "../Domain/Ids.ts"
import type { PluginEventKind } from "../Domain/Webhook.ts"
import type { StoreUnavailable, Tx } from "../Sql.ts"

/** One message of an invoice, before it has its deliveries. */
export interface PluginMessage extends Owner {
  readonly invoice: InvoiceId
  readonly kind: PluginEventKind
  /** Counts the messages of the invoice. */
  readonly ordinal: number
  /** Its JSON, without what names a delivery. */
  readonly body: Readonly<Record<string, unknown>>
}

/** By default nothing: an installation without plugins has no such messages. */
export class PluginEvents extends Context.Reference<PluginEvents>()("tilld/Events/PluginEvents", {
  defaultValue: () => ({
    /** Notes the state of an invoice, and gives what is to be told of it since the last call. `at` in Unix milliseconds. */
    due: (_invoice: InvoiceId, _at: number): Effect.Effect<ReadonlyArray<PluginMessage>, StoreUnavailable, Tx> =>
      Effect.succeed([])
  })
}) {}
