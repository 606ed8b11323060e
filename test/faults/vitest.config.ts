import { defineConfig } from "vitest/config"

/** `npm run test:faults`: every fault, which takes most of an hour. `npm test` has the fast ones, `*.test.ts`. */
export default defineConfig({
  test: {
    include: ["test/faults/*.{suite,test}.ts"],
    globalSetup: "test/lib/build.ts",
    setupFiles: "test/lib/setup.ts",
    pool: "forks",
    fileParallelism: false,
    testTimeout: 1_800_000,
    hookTimeout: 60_000
  }
})
