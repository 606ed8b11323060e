// What `tilld/client` gives: all that these files export is public, and their declarations are shipped as one file.
// The client runs in other people's programs, without Effect: the platform's own chance will do for back-off.
// @effect-diagnostics globalRandom:off

import type { ClientOptions, TilldClient } from "./client.ts"
import { makeClient } from "./make.ts"
import { sleep } from "./time.ts"

export * from "./client.ts"
export * from "./errors.ts"
export * from "./types.ts"
export * from "./units.ts"
export * from "./webhook.ts"

/**
 * A client of tilld's API, for server-side code.
 *
 * Requests that may succeed when they are repeated are repeated: those without an answer, and those answered 429, 500,
 * 502, 503, 504 or `IDEMPOTENCY_KEY_IN_USE`, after `Retry-After` where that is at most a minute. It is safe: what makes
 * a payment or an endpoint carries an `Idempotency-Key`, and a quote is asked for anew.
 */
export const createClient = (options: ClientOptions): TilldClient => makeClient(options, { sleep, random: Math.random })
