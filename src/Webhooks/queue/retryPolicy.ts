import { Duration } from "effect"
import { type DeliveryStatus, failedAfter, retryDelays } from "../../Domain/DeliveryObject.ts"

export interface DeliveryState {
  readonly status: DeliveryStatus
  /** Unix milliseconds; undefined when no attempt is left, or none is needed. */
  readonly nextAttemptAt: number | undefined
}

/** Only a 2xx status is a success: not a redirect, not a missing response. */
export const succeeded = (status: number | undefined): boolean => status !== undefined && status >= 200 && status < 300

/**
 * The state of a delivery after its `attempts`-th attempt ended at `endedAt` (Unix milliseconds) with the receiver's
 * `status`, undefined when there was no response.
 */
export const afterAttempt = (attempts: number, status: number | undefined, endedAt: number): DeliveryState => {
  if (succeeded(status)) return { status: "delivered", nextAttemptAt: undefined }
  const delay = retryDelays[attempts - 1]
  return {
    status: attempts < failedAfter ? "pending" : "failed",
    nextAttemptAt: delay === undefined ? undefined : endedAt + Duration.toMillis(delay)
  }
}
