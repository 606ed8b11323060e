import { parametersIn } from "../Domain/pathParameters.ts"
import type { PortalRoute } from "./route.ts"

type Params = Readonly<Record<string, string>>

const parameters = ({ path }: { readonly path: string }) => path.split("/:").length - 1

/** The route of a path, or the methods that it takes. Of several that fit, the one with the fewest parameters. */
export type RouteMatch<Route> =
  | { readonly route: Route; readonly params: Params }
  | { readonly allow: ReadonlyArray<string> }
  | undefined

/** @param path below the page's account and mode, still percent-encoded */
export const matchRoute = <Route extends Pick<PortalRoute<never>, "method" | "path">>(
  routes: ReadonlyArray<Route>,
  method: string,
  path: string
): RouteMatch<Route> => {
  const fitting = routes
    .flatMap((route) => {
      const params = parametersIn(route.path.split("/"), path.split("/"))
      return params === undefined ? [] : [{ route, params }]
    })
    .toSorted((a, b) => parameters(a.route) - parameters(b.route))
  const asked = method === "HEAD" ? "GET" : method
  const found = fitting.find(({ route }) => route.method === asked)
  if (found !== undefined || fitting.length === 0) return found
  return { allow: [...new Set(fitting.map(({ route }) => route.method))] }
}
