import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: "test/lib/build.ts",
    // Four processes on two cores: suites of a daemon wait for it most of the time. Each process loads the program once
    // for all suites, which takes a third of the time that loading it for each does. None ends before the others: tinypool
    // 1.1 may end an idle process twice, which vitest reports as an error.
    pool: "forks",
    isolate: false,
    setupFiles: "test/lib/setup.ts",
    poolOptions: { forks: { minForks: 4, maxForks: 4, execArgv: ["--max-semi-space-size=64"] } },
    // Within a suite, concurrent tests share its chains and its core.
    maxConcurrency: 4,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    teardownTimeout: 20_000,
    retry: 0
  }
})
