import type { EventKind } from "../../Domain/Event.ts"
import type { EndpointId } from "../../Domain/Ids.ts"
import type { Owner } from "../../Domain/Owner.ts"
import type { Endpoint } from "../../Domain/Webhook.ts"

/** One place that an event is owed to. */
export interface DeliveryTarget {
  /** Whose secret signs; undefined: the account's default secret. */
  readonly endpoint: EndpointId | undefined
  readonly url: string
  /** The payment's own webhookUrl is owed the event here, whatever becomes of the endpoint. */
  readonly isOwnUrl: boolean
  /** Deliveries of one lane share its slots: an endpoint's id, or the origin of a URL and whose payments name it. */
  readonly lane: string
}

/** The same URL, however it is spelled. */
export const isSameUrl = (one: string, other: string) => one === other || new URL(one).href === new URL(other).href

/** The lane of what goes to payments' own URLs: no other account's receiver on the same host is in it. */
export const ownLane = ({ account, mode }: Owner, url: string): string => `${new URL(url).origin} ${account}/${mode}`

/**
 * Where an event goes: to every endpoint that subscribes to its kind, and to the payment's own webhookUrl, which gets
 * every kind. Where that is the URL of an endpoint, the endpoint's secret signs and the event goes there once.
 */
export const targetsOf = (
  owner: Owner,
  endpoints: ReadonlyArray<Endpoint>,
  kind: EventKind,
  webhookUrl: string | undefined
): ReadonlyArray<DeliveryTarget> => {
  const subscribed = endpoints.filter((endpoint) => endpoint.events.includes(kind))
  const toEndpoint = ({ id, url }: Endpoint, isOwnUrl: boolean) => ({ endpoint: id, url, isOwnUrl, lane: id })
  if (webhookUrl === undefined) return subscribed.map((endpoint) => toEndpoint(endpoint, false))

  const isOwn = (endpoint: Endpoint) => isSameUrl(endpoint.url, webhookUrl)
  const own = subscribed.find(isOwn) ?? endpoints.find(isOwn)
  const others = subscribed.filter((endpoint) => endpoint !== own).map((endpoint) => toEndpoint(endpoint, false))
  return own === undefined
    ? [...others, { endpoint: undefined, url: webhookUrl, isOwnUrl: true, lane: ownLane(owner, webhookUrl) }]
    : [...others, toEndpoint(own, true)]
}
