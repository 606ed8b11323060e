import { Schema } from "effect"
import type { Owner } from "./Account.ts"

/** What a shop plugin may do with its key. The names are those of BTCPay Server's Greenfield API, which the plugins ask for. */
export const PluginPermission = Schema.Literal(
  "btcpay.store.canviewinvoices",
  "btcpay.store.cancreateinvoice",
  "btcpay.store.canmodifyinvoices",
  "btcpay.store.canviewstoresettings",
  "btcpay.store.canmodifystoresettings",
  "btcpay.store.webhooks.canmodifywebhooks",
  "btcpay.store.cancreatenonapprovedpullpayments",
  "btcpay.store.cancreatepullpayments"
)
export type PluginPermission = typeof PluginPermission.Type
export const pluginPermissions: ReadonlyArray<PluginPermission> = PluginPermission.literals

/** What the common plugins ask for: all but those that let them do nothing more. */
export const commonPluginPermissions = pluginPermissions.filter((each) => !/modifystore|createpull/.test(each))

/** What the shop may then do, for people. */
export const pluginPermissionTexts: Readonly<Record<PluginPermission, string>> = {
  "btcpay.store.canviewinvoices": "read invoices and what was paid for them",
  "btcpay.store.cancreateinvoice": "create invoices",
  "btcpay.store.canmodifyinvoices": "cancel invoices, accept what came for them, change their metadata",
  "btcpay.store.canviewstoresettings": "read what the account is called, its currencies and rates",
  "btcpay.store.canmodifystoresettings": "all that a shop plugin may do; it changes no setting here",
  "btcpay.store.webhooks.canmodifywebhooks": "create, change and delete its webhooks",
  "btcpay.store.cancreatenonapprovedpullpayments": "ask for refunds, which a person pays",
  "btcpay.store.cancreatepullpayments": "ask for refunds, which a person pays here too"
}

/** The permissions that one stands for, beside itself. */
const implied: Partial<Readonly<Record<PluginPermission, ReadonlyArray<PluginPermission>>>> = {
  "btcpay.store.canmodifyinvoices": ["btcpay.store.canviewinvoices", "btcpay.store.cancreateinvoice"],
  "btcpay.store.canviewstoresettings": ["btcpay.store.canviewinvoices"],
  "btcpay.store.canmodifystoresettings": pluginPermissions,
  "btcpay.store.cancreatepullpayments": ["btcpay.store.cancreatenonapprovedpullpayments"]
}

interface PluginKey {
  readonly pluginPermissions: ReadonlyArray<PluginPermission>
}

/** Whether a key may do something, by a permission that it has or by one that implies it. */
export const allows = ({ pluginPermissions }: PluginKey, permission: PluginPermission): boolean =>
  pluginPermissions.some((each) => each === permission || implied[each]?.includes(permission) === true)

/** What plugins call a store: an account in one mode. */
export const storeIdOf = ({ account, mode }: Owner): string => `${account}-${mode}`
