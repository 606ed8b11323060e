/** The pages of shop plugins: addresses that they build themselves, which lead to the checkout or the portal, and the script of the modal. */
import { Effect } from "effect"
import { pageOfInvoice } from "../Domain/Invoice.ts"
import { assets } from "../Pages/assets.ts"
import { errorPage, seeOther } from "../Pages/reply.tsx"
import type { PageRoom } from "../Pages.ts"
import * as Invoices from "../Payments/InvoicesRepo.ts"
import { Settings } from "../Settings.ts"
import { Reader } from "../Sql.ts"
import * as Repo from "./PluginInvoicesRepo.ts"
import { refundPage } from "./RefundPage.tsx"

/** `/i/ID`, `/i/ID/METHOD`, `/invoice?id=ID`: the checkout, for whoever has the id; `/invoices/ID`: for staff. */
const idOf = (path: string, search: string): string =>
  (path === "/invoice" ? new URLSearchParams(search).get("id") : /^\/(?:i|invoices)\/([^/]+)/.exec(path)?.[1]) ?? ""

/** What the checkout takes of the query. */
const queryOf = (search: string): string => {
  const lang = new URLSearchParams(search).get("lang")
  return lang === null ? "" : `?lang=${encodeURIComponent(lang)}`
}

export const makePluginPages = Effect.gen(function* () {
  const reader = yield* Reader
  const { publicUrl } = (yield* Settings).server
  const context = yield* Effect.context<Effect.Effect.Context<ReturnType<typeof refundPage>>>()
  const room: PageRoom = Effect.fnUntraced(function* ({ body, method, path, requestId, search }) {
    const pull = /^\/pull-payments\/([^/]+)$/.exec(path)?.[1]
    const form = method === "POST" ? new URLSearchParams(body?.toString("utf8")) : undefined
    const refund = pull === undefined ? undefined : yield* Effect.provide(refundPage(pull, form), context)
    if (refund !== undefined) return refund
    if (path === "/modal/btcpay.js") return seeOther(`${publicUrl}${assets().modal()}`)
    const plugin = yield* Repo.byId(reader, idOf(path, search))
    const invoice = plugin && (yield* Invoices.byId(reader, plugin.id))
    if (invoice === undefined) {
      const text = "There is no such invoice: check the link."
      return errorPage("checkout", { status: 404, title: "Not found", text }, requestId)
    }
    return seeOther(
      path.startsWith("/invoices/")
        ? `${publicUrl}/portal/a/${invoice.account}/${invoice.mode}/invoices/${invoice.id}`
        : `${pageOfInvoice(invoice, publicUrl)}${queryOf(search)}`
    )
  })
  return room
})
