// The package entry `tilld/client`: everything that these files export is public; their declarations ship as one file.
// The client runs in other people's programs, without Effect: it uses the platform's own randomness for back-off.
// @effect-diagnostics globalRandom:off

import type { ClientOptions, TilldClient } from "./client.ts"
import { makeClient } from "./make.ts"
import { sleep } from "./transport.ts"

export * from "./client.ts"
export * from "./errors.ts"
export type * from "./types.ts"
export * from "./units.ts"
export * from "./webhook.ts"

/**
 * A client of tilld's API, for server-side code.
 *
 * Requests that may succeed later are retried: those without a response, and those answered with 429, 500, 502, 503, 504 or
 * `IDEMPOTENCY_KEY_IN_USE`, after `Retry-After` where that is at most a minute. Retries are safe: requests that create a
 * payment or an endpoint, change, cancel, decide or send again carry an `Idempotency-Key`, and a retried quote is a new one.
 */
export const createClient = (options: ClientOptions): TilldClient => makeClient(options, { sleep, random: Math.random })
