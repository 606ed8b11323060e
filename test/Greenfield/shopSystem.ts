// A shop system's side of the plugin API, in process: a key with the permissions of a plugin, and the chain as the ledger has it.
import { Effect, Redacted } from "effect"
import { defaultAccount } from "../../src/Auth/Accounts.ts"
import { Keys } from "../../src/Auth.ts"
import type { DatedTransfer } from "../../src/Chains/ledger/LedgerRepo.ts"
import type { Mode } from "../../src/Domain/Chain.ts"
import type { AccountId } from "../../src/Domain/Ids.ts"
import { type PluginPermission, storeIdOf } from "../../src/Domain/Plugin.ts"
import { type Answered, TestApi } from "../lib/api.ts"
import { execute, rows } from "../lib/store.ts"
import { tick } from "../Payments/settling.ts"

/** What the plugin of WooCommerce asks for. */
export const wooPermissions: ReadonlyArray<PluginPermission> = [
  "btcpay.store.canviewinvoices",
  "btcpay.store.cancreateinvoice",
  "btcpay.store.canviewstoresettings",
  "btcpay.store.canmodifyinvoices",
  "btcpay.store.webhooks.canmodifywebhooks",
  "btcpay.store.cancreatenonapprovedpullpayments"
]

/** Turns plugins on for an account. */
export const pluginsOn = (account: string = defaultAccount) =>
  execute(
    `INSERT INTO shops (account_id, frame_origins, plugins) VALUES (?, '', 'on')
     ON CONFLICT (account_id) DO UPDATE SET plugins = 'on'`,
    [account]
  )

/** A plugin that is connected to an account's store. */
export const plugin = Effect.fnUntraced(function* (
  permissions = wooPermissions,
  mode: Mode = "test",
  account: AccountId = defaultAccount
) {
  const { call } = yield* TestApi
  const keys = yield* Keys
  yield* pluginsOn(account)
  const made = yield* Effect.orDie(
    keys.create({ account, mode, name: "shop", permissions: [], pluginPermissions: permissions, expiresIn: undefined })
  )
  const key = Redacted.value(made.key)
  const store = storeIdOf({ account, mode })
  const headers = { authorization: `token ${key}` }
  const api = (method: string, path: string, json?: unknown): Effect.Effect<Answered> =>
    call(method, `/api/v1/${path}`, { headers, ...(json === undefined ? {} : { json }) })
  const ofStore = (method: string, path: string, json?: unknown) => api(method, `stores/${store}/${path}`, json)
  return { api, call, key, ofStore, store }
})

/** The messages of an invoice, in the order in which they were stored. */
export const toldOf = (invoice: string) =>
  Effect.map(
    rows<{ body: string }>("SELECT body FROM events WHERE payment_id = ? AND kind GLOB 'Invoice*' ORDER BY sequence", [
      invoice
    ]),
    (all) => all.map(({ body }) => JSON.parse(body))
  )

let head = 1_000
export const nextHead = () => (head += 100)

/** Pays so much ETH on base, `behind` blocks before a new head. Gives the transaction. */
export const payEth = (address: string, amount: bigint | string, behind = 0, blockTime?: number) => {
  const at = nextHead()
  const txHash = `0x${"7".repeat(56)}${String(at).padStart(8, "0")}`
  const transfer = {
    ...{ address: address.toLowerCase(), amount: BigInt(amount), blockHash: `0x${at - behind}` },
    ...{ blockNumber: at - behind, blockTime: blockTime ?? at - behind, currency: "ETH", position: "tx:0", txHash }
  } satisfies DatedTransfer
  return Effect.as(tick({ head: at, transfers: [transfer] }), txHash)
}

/** The chain goes on, so that what came before is deep. */
export const mine = Effect.suspend(() => tick({ head: nextHead() }))
