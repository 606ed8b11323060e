/** The routes of all sections of the portal: each section's file in `Portal/pages` lists its own. */
import { settingsRoutes } from "./pages/Settings.tsx"

export const routes = [...settingsRoutes]
