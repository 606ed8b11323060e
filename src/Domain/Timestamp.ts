/** Unix milliseconds as ISO 8601, UTC, with milliseconds. */
// A given time reads no clock, and DateTime takes five times as long for it, some times a request.
// @effect-diagnostics-next-line globalDate:off
export const iso = (millis: number): string => new Date(millis).toISOString()
