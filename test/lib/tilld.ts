import { afterEach } from "@effect/vitest"
import { takeStories } from "./processes.ts"

export * from "./processes.ts"

// When a test fails, what its processes said is the first thing to look at; those of the whole suite count too.
afterEach(({ task }) => {
  for (const story of takeStories()) if (task.result?.state === "fail") process.stderr.write(`\n${story}`)
})
