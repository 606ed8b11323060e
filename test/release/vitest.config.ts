import { defineConfig } from "vitest/config"

/** `npm run test:release`: a release is made, installed, upgraded and removed, which takes minutes. */
export default defineConfig({
  test: {
    include: ["test/release/*.suite.ts"],
    globalSetup: "test/lib/build.ts",
    setupFiles: "test/lib/setup.ts",
    pool: "forks",
    bail: 1,
    testTimeout: 1_200_000,
    hookTimeout: 1_200_000
  }
})
