import { Layer } from "effect"
import { Accounts, Keys, RateLimits } from "./Auth.ts"
import { AddressHistory } from "./Chains/balances/AddressHistory.ts"
import { Tokens } from "./Chains/ledger/Tokens.ts"
import { WatchedAddresses } from "./Chains/ledger/WatchedAddresses.ts"
import { Networks } from "./Chains/providers/Networks.ts"
import { Rpc } from "./Chains/rpc/Rpc.ts"
import { Chains } from "./Chains.ts"
import { conditionsLayer } from "./Conditions.ts"
import { EventStreams } from "./Events/EventStreams.ts"
import { Outbox } from "./Events/Outbox.ts"
import { pluginEventsLayer } from "./Greenfield/readInvoice.ts"
import { Housekeeping } from "./Housekeeping.ts"
import { Idempotency } from "./Http/idempotency.ts"
import { RequestLog } from "./Http/RequestLog.ts"
import { Invoices } from "./Invoices.ts"
import { Addresses, refuseSharedWallets } from "./Payments/addresses/Addresses.ts"
import { Uncollected } from "./Payments/addresses/Uncollected.ts"
import { RefundBell } from "./Payments/decisions/RefundBell.ts"
import { refuseDroppedChains } from "./Payments/openNeeds.ts"
import { settlementLayer } from "./Payments/Settlement.ts"
import { Payments } from "./Payments.ts"
import { Prices } from "./Quotes/Prices.ts"
import { Quotes } from "./Quotes.ts"
import { Secrets } from "./Secrets.ts"
import { MasterKey, Settings, type SettingsShape, type SettingsSource } from "./Settings.ts"
import * as Sql from "./Sql.ts"
import { exportLayer, isJournal, loggingLayer } from "./Telemetry/logging.ts"
import { Metrics } from "./Telemetry/Metrics.ts"
import { Workers } from "./Telemetry/Workers.ts"
import { Dispatcher } from "./Webhooks/Dispatcher.ts"
import { DeliveryBell } from "./Webhooks/queue/DeliveryBell.ts"
import { SigningKeys } from "./Webhooks/SigningKeys.ts"
import { DeliveryClient } from "./Webhooks/transport/DeliveryClient.ts"
import { Resolver, TargetGuard } from "./Webhooks/transport/TargetGuard.ts"
import { Webhooks } from "./Webhooks.ts"

/** The store, by whichever engine. */
export type Store = ReturnType<typeof Sql.layer>

/**
 * All services that the workers and the API need. Each line is built on the lines below it, and closed before them. The
 * caller holds the instance lock of the database.
 */
export const appLayer = (
  settings: SettingsShape,
  env: SettingsSource["env"],
  store: Store = Sql.layer(settings.database.path)
) =>
  Layer.mergeAll(Invoices.layer, conditionsLayer).pipe(
    Layer.provideMerge(Payments.layer),
    Layer.provideMerge(Layer.mergeAll(Addresses.layer, Quotes.layer, Uncollected.layer)),
    Layer.provideMerge(Layer.mergeAll(Chains.layer, AddressHistory.layer)),
    Layer.provideMerge(Layer.mergeAll(settlementLayer, WatchedAddresses.layer, Tokens.layer)),
    Layer.provideMerge(Prices.layer),
    Layer.provideMerge(Networks.layer),
    Layer.provideMerge(Rpc.layer),
    Layer.provideMerge(Layer.mergeAll(Dispatcher.layer, Webhooks.layer, EventStreams.layer)),
    Layer.provideMerge(
      Layer.mergeAll(Layer.provideMerge(Outbox.layer, DeliveryBell.layer), DeliveryClient.layer, SigningKeys.layer)
    ),
    Layer.provide(pluginEventsLayer),
    Layer.provideMerge(TargetGuard.layer),
    Layer.provideMerge(Resolver.layer),
    Layer.provideMerge(
      Layer.mergeAll(
        Layer.provideMerge(RateLimits.layer, Accounts.layer),
        Keys.layer,
        Idempotency.layer,
        RequestLog.layer,
        Housekeeping.layer,
        refuseDroppedChains,
        refuseSharedWallets
      )
    ),
    Layer.provideMerge(Secrets.layer),
    Layer.provideMerge(store),
    Layer.provideMerge(MasterKey.layer(env)),
    Layer.provideMerge(Layer.succeed(Settings, settings)),
    Layer.provideMerge(Layer.mergeAll(Metrics.layer, Workers.layer, RefundBell.layer)),
    Layer.provide(exportLayer(settings.telemetry)),
    Layer.provide(loggingLayer(settings.log, isJournal(env)))
  )
