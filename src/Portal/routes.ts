/** The routes of all sections of the portal: each section's file in `Portal/pages` lists its own. */
import { accountRoutes } from "./pages/Accounts.tsx"
import { auditRoutes } from "./pages/Audit.tsx"
import { changeRoutes } from "./pages/changes.ts"
import { deliveryRoutes } from "./pages/Deliveries.tsx"
import { exceptionRoutes } from "./pages/Exception.tsx"
import { exceptionsRoutes } from "./pages/Exceptions.tsx"
import { healthRoutes } from "./pages/Health.tsx"
import { homeRoutes } from "./pages/Home.tsx"
import { keyRoutes } from "./pages/Keys.tsx"
import { meRoutes } from "./pages/Me.tsx"
import { newPaymentRoutes } from "./pages/NewPayment.tsx"
import { paymentRoutes } from "./pages/Payment.tsx"
import { paymentRefundRoutes } from "./pages/PaymentRefund.tsx"
import { paymentsRoutes } from "./pages/Payments.tsx"
import { peopleRoutes } from "./pages/People.tsx"
import { priceRoutes } from "./pages/Prices.tsx"
import { redeliveryRoutes } from "./pages/Redelivery.tsx"
import { requestRoutes } from "./pages/Requests.tsx"
import { settingsRoutes } from "./pages/Settings.tsx"
import { simulateRoutes } from "./pages/Simulate.tsx"
import { styleRoutes } from "./pages/Style.tsx"
import { webhookRoutes } from "./pages/Webhooks.tsx"

export const routes = [
  ...changeRoutes,
  ...homeRoutes,
  ...paymentsRoutes,
  ...newPaymentRoutes,
  ...paymentRoutes,
  ...paymentRefundRoutes,
  ...exceptionsRoutes,
  ...exceptionRoutes,
  ...simulateRoutes,
  ...keyRoutes,
  ...webhookRoutes,
  ...deliveryRoutes,
  ...redeliveryRoutes,
  ...requestRoutes,
  ...priceRoutes,
  ...healthRoutes,
  ...accountRoutes,
  ...settingsRoutes,
  ...auditRoutes,
  ...peopleRoutes,
  ...meRoutes,
  ...styleRoutes
]
