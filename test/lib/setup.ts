import { effect, it, layer, live, prop, scoped, scopedLive } from "@effect/vitest"

// `layer` puts methods with its own services on the one `it` that all suites of a process share: each begins with its own.
Object.assign(it, { effect, layer, live, prop, scoped, scopedLive })
