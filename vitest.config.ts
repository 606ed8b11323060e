import { defineConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"

/** Suites that run whole programs take longest. The last one to begin would keep the others waiting. */
class ProgramsFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>) {
    const isProgram = ({ moduleId }: TestSpecification) =>
      /\/test\/(commands|crash|daemon|fuzz|load|sim|spec)\//.test(moduleId)
    const sorted = await super.sort(files)
    return [...sorted.filter(isProgram), ...sorted.filter((file) => !isProgram(file))]
  }
}

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
    sequence: { sequencer: ProgramsFirst },
    // Within a suite, concurrent tests share its chains and its core.
    maxConcurrency: 4,
    // What hangs ends: no measure of speed, on any machine.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    teardownTimeout: 20_000,
    retry: 0
  }
})
