/** What shop plugins are told of an invoice that they made: `src/Greenfield` says what, the outbox stores it. */
import { Context, Effect } from "effect"
import type { Owner } from "../Domain/Account.ts"
import type { PluginEventKind } from "../Domain/Event.ts"
import type { EventId, InvoiceId } from "../Domain/Ids.ts"
import type { Db, StoreUnavailable, Tx } from "../Sql.ts"

/** An event for the endpoints of shop plugins. */
export interface PluginEvent extends Owner {
  readonly id: EventId
  readonly invoice: InvoiceId
  readonly kind: PluginEventKind
  /** The webhook's body without what is of its delivery. At least one field. */
  readonly body: object
}

/** By default nothing: an installation without plugins has no such messages. */
export class PluginEvents extends Context.Reference<PluginEvents>()("tilld/Events/PluginEvents", {
  defaultValue: () => ({
    /** Notes the state of an invoice, and gives what is to be told of it since the last call. `at` in Unix milliseconds. */
    due: (_invoice: InvoiceId, _at: number): Effect.Effect<ReadonlyArray<PluginEvent>, StoreUnavailable, Tx> =>
      Effect.succeed([]),
    /** Invoices of which something may be due that no change of their payments shows: money that came too late is certain. */
    awaited: (_db: Db): Effect.Effect<ReadonlyArray<InvoiceId>, StoreUnavailable> => Effect.succeed([])
  })
}) {}
