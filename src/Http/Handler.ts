import type { HttpApiEndpoint, HttpApiGroup } from "@effect/platform"
import type { Effect } from "effect"
import type { ApiError } from "../Domain/ApiError.ts"
import type { StoreUnavailable } from "../Sql.ts"

/** What a handler gives: a body in its wire form, as the API's definition declares it. */
export interface Answer<Body> {
  readonly body: Body
  /** The definition's, unless given. */
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
}

export const answer = <Body>(body: Body, extra: Omit<Answer<Body>, "body"> = {}): Answer<Body> => ({ body, ...extra })

type Endpoint = HttpApiEndpoint.HttpApiEndpoint.Any

/** The request, decoded by the endpoint's schemas. */
export interface Input<E extends Endpoint> {
  readonly path: HttpApiEndpoint.HttpApiEndpoint.PathParsed<E>
  readonly query: HttpApiEndpoint.HttpApiEndpoint.UrlParams<E>
  readonly payload: HttpApiEndpoint.HttpApiEndpoint.Payload<E>
}

export type Handler<E extends Endpoint, R> = (
  input: Input<E>
) => Effect.Effect<Answer<HttpApiEndpoint.HttpApiEndpoint.Success<E>>, ApiError | StoreUnavailable, R>

/** A handler for every endpoint of a group, by name. Where the group asks for a key, `CurrentKey` is there. */
export type Handlers<Group extends HttpApiGroup.HttpApiGroup.Any> = {
  readonly [Name in HttpApiEndpoint.HttpApiEndpoint.Name<HttpApiGroup.HttpApiGroup.Endpoints<Group>>]: Handler<
    HttpApiEndpoint.HttpApiEndpoint.WithName<HttpApiGroup.HttpApiGroup.Endpoints<Group>, Name>,
    HttpApiGroup.HttpApiGroup.Provides<Group>
  >
}
