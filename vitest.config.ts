import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: "test/lib/build.ts",
    // A process for each suite, two at a time: a suite with local chains of its own keeps a core busy.
    pool: "forks",
    poolOptions: { forks: { minForks: 1, maxForks: 2 } },
    // Within a suite, concurrent tests share its chains and its core.
    maxConcurrency: 4,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    teardownTimeout: 20_000,
    retry: 0
  }
})
