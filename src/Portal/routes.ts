/** The routes of all sections of the portal: each section's file in `Portal/pages` lists its own. */
import { auditRoutes } from "./pages/Audit.tsx"
import { meRoutes } from "./pages/Me.tsx"
import { peopleRoutes } from "./pages/People.tsx"

export const routes = [...auditRoutes, ...meRoutes, ...peopleRoutes]
