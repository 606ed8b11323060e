import type { HttpApiEndpoint, HttpApiGroup } from "@effect/platform"
import type { Effect } from "effect"
import type { ApiError } from "../Domain/ApiError.ts"
import type { ApiKey } from "../Domain/ApiKey.ts"
import type { CommitWith, StoreUnavailable } from "../Sql.ts"

/** What a handler gives: a body in its wire form, as the API's definition declares it. */
export interface HttpAnswer<Body> {
  readonly body: Body
  /** The definition's, unless given. */
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** This very object is given to many: it is encoded once. */
  readonly isShared?: true
}

export const answer = <Body>(body: Body, extra: Omit<HttpAnswer<Body>, "body"> = {}): HttpAnswer<Body> => ({
  body,
  ...extra
})

/** An answer that is made once and given again and again. */
export const sharedAnswer = <Body>(body: Body, extra: Omit<HttpAnswer<Body>, "body"> = {}): HttpAnswer<Body> => ({
  body,
  ...extra,
  isShared: true
})

type Endpoint = HttpApiEndpoint.HttpApiEndpoint.Any

/** A request, decoded by the endpoint's schemas. */
export interface Input<E extends Endpoint> {
  /** Whose request it is. Not there where the group asks for no key. */
  readonly key: ApiKey
  readonly path: HttpApiEndpoint.HttpApiEndpoint.PathParsed<E>
  readonly headers: HttpApiEndpoint.HttpApiEndpoint.Headers<E>
  readonly query: HttpApiEndpoint.HttpApiEndpoint.UrlParams<E>
  readonly payload: HttpApiEndpoint.HttpApiEndpoint.Payload<E>
  /** Where the answer is to be given again should the request be repeated: to be run in the transaction of its effect. */
  readonly remember?: CommitWith<HttpAnswer<unknown>> | undefined
}

/** What a service stores besides a result, so that the answer that tells of it can be given again. */
export const rememberAs = <A>(
  remember: CommitWith<HttpAnswer<unknown>> | undefined,
  answerWith: (result: A) => HttpAnswer<unknown>
): CommitWith<A> | undefined => remember && ((result) => remember(answerWith(result)))

type Asked<Group extends HttpApiGroup.HttpApiGroup.Any, E extends Endpoint> = [
  HttpApiGroup.HttpApiGroup.Provides<Group>
] extends [never]
  ? Omit<Input<E>, "key">
  : Input<E>

/** A handler for every endpoint of a group, by name. Where the group asks for a key, its input has it. */
export type Handlers<Group extends HttpApiGroup.HttpApiGroup.Any> = {
  readonly [E in HttpApiGroup.HttpApiGroup.Endpoints<Group> as HttpApiEndpoint.HttpApiEndpoint.Name<E>]: (
    input: Asked<Group, E>
  ) => Effect.Effect<HttpAnswer<HttpApiEndpoint.HttpApiEndpoint.Success<E>>, ApiError | StoreUnavailable>
}
