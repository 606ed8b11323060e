/** Unix milliseconds as ISO 8601, UTC, with milliseconds. */
// This reads no clock. DateTime would take five times as long, several times a request.
// @effect-diagnostics-next-line globalDate:off
export const iso = (millis: number): string => new Date(millis).toISOString()
