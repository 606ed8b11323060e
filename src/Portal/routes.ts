/** The routes of all sections of the portal: each section's file in `Portal/pages` lists its own. */

import { Effect, Option, Stream } from "effect"
import { Outbox } from "../Events/Outbox.ts"
import type { HttpReply } from "../Http/HttpReply.ts"
import { waitAtMost } from "../lib/waiting.ts"
import { OpenStreams, streamHeaders } from "../Pages/OpenStreams.ts"
import { settingsRoutes } from "./pages/AccountSettings.tsx"
import { accountRoutes } from "./pages/Accounts.tsx"
import { auditRoutes } from "./pages/Audit.tsx"
import { deliveryRoutes } from "./pages/Deliveries.tsx"
import { exceptionRoutes } from "./pages/Exceptions.tsx"
import { healthRoutes } from "./pages/Health.tsx"
import { homeRoutes } from "./pages/Home.tsx"
import { invoiceRoutes } from "./pages/Invoices.tsx"
import { keyRoutes } from "./pages/Keys.tsx"
import { ledgerRoutes } from "./pages/Ledger.tsx"
import { meRoutes } from "./pages/Me.tsx"
import { newPaymentRoutes } from "./pages/NewPayment.tsx"
import { pairingRoutes } from "./pages/Pairing.tsx"
import { paymentRoutes } from "./pages/Payment.tsx"
import { paymentsRoutes } from "./pages/Payments.tsx"
import { peopleRoutes } from "./pages/People.tsx"
import { priceRoutes } from "./pages/Prices.tsx"
import { requestRoutes } from "./pages/Requests.tsx"
import { webhookRoutes } from "./pages/Webhooks.tsx"
import { type PortalHandler, type PortalRoute, pageRoute } from "./route.ts"

/** A comment, so that proxies and browsers can tell a quiet stream from a dead one. */
const keepAlive = ":\n\n"

/** A stream ends after so many messages, at the latest in ten minutes of silence; the next one needs a session again. */
const mostMessages = 40

const open = new OpenStreams()

/** A browser opens no other one after a 204. */
const none: HttpReply = { status: 204, headers: {}, text: "" }

/** An open page learns that its account and mode have changed; it is then read again, which checks the session. */
const changes: PortalHandler<Outbox> = Effect.fnUntraced(function* ({ owner, session }) {
  const outbox = yield* Outbox
  if (!open.mayOpen(session, owner.account)) return none
  const follow = Effect.gen(function* () {
    const changed = yield* outbox.listen(owner)
    const next = waitAtMost(changed, "15 seconds").pipe(
      Effect.map((woken) => (Option.isSome(woken) ? "data: changed\n\n" : keepAlive))
    )
    return Stream.concat(Stream.make(keepAlive), Stream.take(Stream.repeatEffect(next), mostMessages))
  })
  const rest = open.counted(session, owner.account, Stream.unwrapScoped(follow))
  const reply: HttpReply = { status: 200, headers: streamHeaders, text: "", rest }
  return reply
})

export const changeRoutes: ReadonlyArray<PortalRoute<Outbox>> = [pageRoute("/changes", "viewer", changes)]

export const routes = [
  ...changeRoutes,
  ...homeRoutes,
  ...paymentsRoutes,
  ...newPaymentRoutes,
  ...invoiceRoutes,
  ...paymentRoutes,
  ...exceptionRoutes,
  ...ledgerRoutes,
  ...keyRoutes,
  ...pairingRoutes,
  ...webhookRoutes,
  ...deliveryRoutes,
  ...requestRoutes,
  ...priceRoutes,
  ...healthRoutes,
  ...accountRoutes,
  ...settingsRoutes,
  ...auditRoutes,
  ...peopleRoutes,
  ...meRoutes
]
