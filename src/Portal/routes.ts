/** The routes of all sections of the portal: each section's file in `Portal/pages` lists its own. */
import type { PortalRoute } from "./route.ts"

export const routes: ReadonlyArray<PortalRoute<never>> = []
