/** The routes of all sections of the portal: each section's file in `Portal/pages` lists its own. */
import { exceptionRoutes } from "./pages/Exception.tsx"
import { exceptionsRoutes } from "./pages/Exceptions.tsx"
import { homeRoutes } from "./pages/Home.tsx"
import { newPaymentRoutes } from "./pages/NewPayment.tsx"
import { paymentRoutes } from "./pages/Payment.tsx"
import { paymentsRoutes } from "./pages/Payments.tsx"
import { simulateRoutes } from "./pages/Simulate.tsx"

export const routes = [
  ...homeRoutes,
  ...paymentsRoutes,
  ...newPaymentRoutes,
  ...paymentRoutes,
  ...exceptionsRoutes,
  ...exceptionRoutes,
  ...simulateRoutes
]
