/** The routes of all sections of the portal: each section's file in `Portal/pages` lists its own. */
import { meRoutes } from "./pages/Me.tsx"

export const routes = [...meRoutes]
