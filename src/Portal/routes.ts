/** The routes of all sections of the portal: each section's file in `Portal/pages` lists its own. */
import { accountRoutes } from "./pages/Accounts.tsx"
import { deliveryRoutes } from "./pages/Deliveries.tsx"
import { healthRoutes } from "./pages/Health.tsx"
import { keyRoutes } from "./pages/Keys.tsx"
import { priceRoutes } from "./pages/Prices.tsx"
import { redeliveryRoutes } from "./pages/Redelivery.tsx"
import { requestRoutes } from "./pages/Requests.tsx"
import { webhookRoutes } from "./pages/Webhooks.tsx"

export const routes = [
  ...keyRoutes,
  ...webhookRoutes,
  ...deliveryRoutes,
  ...redeliveryRoutes,
  ...requestRoutes,
  ...priceRoutes,
  ...healthRoutes,
  ...accountRoutes
]
