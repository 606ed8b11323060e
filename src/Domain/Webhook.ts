import type { Mode } from "./Chain.ts"
import type { EventKind } from "./Event.ts"
import type { AccountId, EndpointId } from "./Ids.ts"

/** A registered webhook endpoint. Its secret is sealed in the store and never part of this record. */
export interface Endpoint {
  readonly id: EndpointId
  readonly account: AccountId
  readonly mode: Mode
  readonly url: string
  readonly events: ReadonlyArray<EventKind>
  /** Unix milliseconds. */
  readonly createdAt: number
}
