import type { HttpApiEndpoint, HttpApiGroup } from "@effect/platform"
import type { Effect } from "effect"
import type { ApiError } from "../Domain/ApiError.ts"
import type { ApiKey } from "../Domain/ApiKey.ts"
import type { CommitWith, StoreUnavailable } from "../Sql.ts"

/** What a handler returns: a body in its wire form, as the API's definition declares it. */
export interface HttpAnswer<Body> {
  readonly body: Body
  /** Default: the status that the definition declares. */
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** This object is the response to many requests: it is encoded once. */
  readonly isShared?: true
}

export const answer = <Body>(body: Body, extra: Omit<HttpAnswer<Body>, "body"> = {}): HttpAnswer<Body> => ({
  body,
  ...extra
})

/** A response that is built once and sent many times. */
export const sharedAnswer = <Body>(body: Body, extra: Omit<HttpAnswer<Body>, "body"> = {}): HttpAnswer<Body> => ({
  ...answer(body, extra),
  isShared: true
})

type Endpoint = HttpApiEndpoint.HttpApiEndpoint.Any

/** A request, decoded by the endpoint's schemas. */
export interface Input<E extends Endpoint> {
  /** The key that authenticated the request. Absent in public groups. */
  readonly key: ApiKey
  readonly path: HttpApiEndpoint.HttpApiEndpoint.PathParsed<E>
  readonly headers: HttpApiEndpoint.HttpApiEndpoint.Headers<E>
  readonly query: HttpApiEndpoint.HttpApiEndpoint.UrlParams<E>
  readonly payload: HttpApiEndpoint.HttpApiEndpoint.Payload<E>
  /** Present when the request has an idempotency key: stores the answer, in the transaction of the request's effect. */
  readonly storeReplay?: CommitWith<HttpAnswer<unknown>> | undefined
}

/** From a result to `storeReplay`: what a service also commits, so that a repeated request gets the same answer. */
export const storeReplayAs = <A>(
  storeReplay: CommitWith<HttpAnswer<unknown>> | undefined,
  answerWith: (result: A) => HttpAnswer<unknown>
): CommitWith<A> | undefined => storeReplay && ((result) => storeReplay(answerWith(result)))

type Asked<Group extends HttpApiGroup.HttpApiGroup.Any, E extends Endpoint> = [
  HttpApiGroup.HttpApiGroup.Provides<Group>
] extends [never]
  ? Omit<Input<E>, "key">
  : Input<E>

/** A handler for every endpoint of a group, by name. In groups with ApiKeyAuth the input has the key. */
export type Handlers<Group extends HttpApiGroup.HttpApiGroup.Any> = {
  readonly [E in HttpApiGroup.HttpApiGroup.Endpoints<Group> as HttpApiEndpoint.HttpApiEndpoint.Name<E>]: (
    input: Asked<Group, E>
  ) => Effect.Effect<HttpAnswer<HttpApiEndpoint.HttpApiEndpoint.Success<E>>, ApiError | StoreUnavailable>
}
