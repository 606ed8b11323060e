/** The server, the store and its payment methods, as shop plugins ask for them. */
import { Effect } from "effect"
import * as AccountsRepo from "../Auth/AccountsRepo.ts"
import { shopOf } from "../Auth/shops.ts"
import { Chains } from "../Chains.ts"
import type { ApiKey } from "../Domain/ApiKey.ts"
import { paymentDefaults } from "../Domain/Payment.ts"
import { storeIdOf } from "../Domain/Plugin.ts"
import { choicesIn } from "../Invoices.ts"
import { Settings } from "../Settings.ts"
import { Reader } from "../Sql.ts"
import { refusal } from "./errors.ts"
import { type Asking, pluginOperation } from "./operations.ts"

export const storeOperations = Effect.gen(function* () {
  const settings = yield* Settings
  const chains = yield* Chains
  const reader = yield* Reader

  const methodsOf = ({ mode }: ApiKey) => choicesIn(settings, mode).map((choice) => choice.toUpperCase())

  const info = Effect.fnUntraced(function* ({ key }: Asking<unknown>) {
    const read = (yield* chains.health).filter(({ mode, ready }) => mode === key.mode && ready)
    const isRead = (id: string) => read.some(({ chain }) => id.endsWith(`-${chain.toUpperCase()}`))
    const ids = methodsOf(key)
    return {
      // That of the contract which this API keeps: plugins compare it.
      ...{ version: "2.4.1", onion: null, supportedPaymentMethods: ids, fullySynched: read.length > 0 },
      syncStatus: ids.map((id) => ({ paymentMethodId: id, available: isRead(id) }))
    }
  })

  const store = Effect.fnUntraced(function* ({ key }: Pick<Asking<unknown>, "key">) {
    const { contact = null, currency = "USD", name, website = null } = yield* shopOf(reader, key.account)
    const account = yield* AccountsRepo.byId(reader, key.account)
    return {
      ...{ id: storeIdOf(key), name: name ?? account?.name ?? key.account, website, supportUrl: contact },
      ...{ defaultCurrency: currency, invoiceExpiration: paymentDefaults.expiresIn, monitoringExpiration: 86_400 },
      ...{ speedPolicy: "MediumSpeed", paymentTolerance: settings.payments.toleranceBps / 100, archived: false }
    }
  })

  const methods = ({ key }: Asking<unknown>) =>
    Effect.succeed(methodsOf(key).map((paymentMethodId) => ({ paymentMethodId, enabled: true, config: null })))

  const current = ({ key, presented }: Asking<unknown>) =>
    Effect.succeed({
      apiKey: presented,
      label: key.name,
      permissions: key.pluginPermissions.map((permission) => `${permission}:${storeIdOf(key)}`)
    })

  const noRates = () => refusal("NOT_FOUND", { code: "not-found" }, "The operator chooses the sources of rates.")

  const settingsToView = "btcpay.store.canviewstoresettings"
  return [
    pluginOperation("GET", "api-keys/current", undefined, current),
    pluginOperation("GET", "server/info", undefined, info),
    pluginOperation("GET", "stores", settingsToView, (asking) => Effect.map(store(asking), (one) => [one])),
    pluginOperation("GET", "stores/:store", settingsToView, store),
    pluginOperation("GET", "stores/:store/payment-methods", settingsToView, methods),
    pluginOperation("GET", "stores/:store/rates/configuration/fallback", settingsToView, noRates)
  ]
})
