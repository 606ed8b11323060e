import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: "test/lib/build.ts",
    // Two processes: a suite with local chains of its own keeps a core busy. They load the program once for all suites,
    // which takes a third of the time that loading it for each does.
    pool: "forks",
    isolate: false,
    setupFiles: "test/lib/setup.ts",
    poolOptions: { forks: { minForks: 1, maxForks: 2, execArgv: ["--max-semi-space-size=64"] } },
    // Within a suite, concurrent tests share its chains and its core.
    maxConcurrency: 4,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    teardownTimeout: 20_000,
    retry: 0
  }
})
