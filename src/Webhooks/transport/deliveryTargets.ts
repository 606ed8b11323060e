import type { Owner } from "../../Domain/Account.ts"
import { isStatusEventKind, type OutboxEventKind } from "../../Domain/Event.ts"
import type { EndpointId } from "../../Domain/Ids.ts"
import { type Endpoint, takes } from "../../Domain/Webhook.ts"

/** A receiver that an event must be delivered to. */
export interface DeliveryTarget {
  /** The endpoint whose secret signs; undefined: the account's default secret. */
  readonly endpoint: EndpointId | undefined
  readonly url: string
  /** This is the payment's own webhookUrl: the event must be delivered here even if the endpoint is deleted. */
  readonly isOwnUrl: boolean
  /**
   * Deliveries of a lane share its slots: an endpoint's id, or a URL's origin with the account and mode of the payments.
   */
  readonly lane: string
}

/** Whether two texts are the same URL after normalisation. */
const isSameUrl = (one: string, other: string) => one === other || new URL(one).href === new URL(other).href

/** The lane of deliveries to payments' own URLs: by origin, and by owner so that accounts do not share a lane. */
export const ownLane = ({ account, mode }: Owner, url: string): string => `${new URL(url).origin} ${account}/${mode}`

/**
 * The targets of an event: every endpoint that subscribes to its kind, and the payment's own webhookUrl, which gets every
 * kind that reports a new status. If that is the URL of an endpoint, the endpoint's secret signs, and the event is sent there
 * once.
 */
export const targetsOf = (
  owner: Owner,
  endpoints: ReadonlyArray<Endpoint>,
  kind: OutboxEventKind,
  webhookUrl: string | undefined
): ReadonlyArray<DeliveryTarget> => {
  const subscribed = endpoints.filter((endpoint) => takes(endpoint, kind))
  const toEndpoint = ({ id, url }: Endpoint, isOwnUrl: boolean) => ({ endpoint: id, url, isOwnUrl, lane: id })
  if (webhookUrl === undefined || !isStatusEventKind(kind))
    return subscribed.map((endpoint) => toEndpoint(endpoint, false))

  const isOwn = (endpoint: Endpoint) => endpoint.plugin === undefined && isSameUrl(endpoint.url, webhookUrl)
  const own = subscribed.find(isOwn) ?? endpoints.find(isOwn)
  const others = subscribed.filter((endpoint) => endpoint !== own).map((endpoint) => toEndpoint(endpoint, false))
  return own === undefined
    ? [...others, { endpoint: undefined, url: webhookUrl, isOwnUrl: true, lane: ownLane(owner, webhookUrl) }]
    : [...others, toEndpoint(own, true)]
}
