import { expect, it } from "@effect/vitest"
import { isPluginKey } from "../../src/Domain/ApiKey.ts"
import { allows, type PluginPermission, pluginPermissions } from "../../src/Domain/Plugin.ts"

const store = (name: string) => `btcpay.store.${name}` as PluginPermission

/** What each permission stands for, itself included, by the names behind `btcpay.store.`. */
const reach: Readonly<Record<string, ReadonlyArray<string>>> = {
  canviewinvoices: ["canviewinvoices"],
  cancreateinvoice: ["cancreateinvoice"],
  canmodifyinvoices: ["canviewinvoices", "cancreateinvoice", "canmodifyinvoices"],
  canviewstoresettings: ["canviewinvoices", "canviewstoresettings"],
  canmodifystoresettings: pluginPermissions.map((name) => name.slice("btcpay.store.".length)),
  "webhooks.canmodifywebhooks": ["webhooks.canmodifywebhooks"],
  cancreatenonapprovedpullpayments: ["cancreatenonapprovedpullpayments"],
  cancreatepullpayments: ["cancreatenonapprovedpullpayments", "cancreatepullpayments"]
}

it("a permission allows itself and what it implies, and nothing else", () => {
  expect(Object.keys(reach).map(store)).toEqual(pluginPermissions)
  for (const [name, allowed] of Object.entries(reach)) {
    const key = { pluginPermissions: [store(name)] }
    expect(pluginPermissions.filter((each) => allows(key, each))).toEqual(allowed.map(store))
    expect(isPluginKey(key)).toBe(true)
  }
  const none = { pluginPermissions: [] }
  expect(pluginPermissions.filter((each) => allows(none, each))).toEqual([])
  expect(isPluginKey(none)).toBe(false)
})
