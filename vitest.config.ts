import { existsSync, readFileSync } from "node:fs"
import { relative } from "node:path"
import { configDefaults, defineConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"
import { treeSeed } from "./test/lib/treeSeed.ts"

/** Suites of `npm run test:long`, which is mode `long`. */
const long = ["test/{crash,load}/*.test.ts"]

/** All suites of a mode; `test` has all that are not long. Some suites do more in another mode. */
const suites: Readonly<Record<string, ReadonlyArray<string>>> = {
  test: ["test/**/*.test.ts"],
  long: [...long, "test/Checkout/manyStreams.http.test.ts"],
  load: ["test/load/*.test.ts"]
}

/** Suites of the database's file: its size, copies, statistics, triggers and speed. With `TEST_ENGINE=postgres` there is none. */
const ofFile = [
  "test/{Auth/usage,Auth/storedRows,Chains/ledger/WatchedAddresses,Books/month,Conditions/judge,Conditions/files,Control/rotateSecrets,Payments/pages}.test.ts",
  "test/Payments/addresses/{Addresses,continuity}.test.ts",
  "test/{Operations/auditLog,Webhooks/deliveries.http}.test.ts",
  "test/Sql/*.test.ts",
  // A browser sees the same of either.
  "test/**/*{accessibility,browser,keyboard}*.test.ts"
]
const { TEST_ENGINE } = process.env

/** Milliseconds of each suite in earlier runs here, as `scripts/vitest-reporter.mjs` notes them. */
const times: Readonly<Record<string, number>> = existsSync("node_modules/.cache/suites.json")
  ? JSON.parse(readFileSync("node_modules/.cache/suites.json", "utf8"))
  : {}

/** The slowest suites begin first: the last one to begin would keep the others waiting. Whole programs are slow. */
class SlowestFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>) {
    const timeOf = ({ moduleId }: TestSpecification) =>
      times[relative(process.cwd(), moduleId)] ??
      (/\/test\/(commands|daemon|fuzz|sim|spec)\//.test(moduleId) ? 60_000 : 0)
    return (await super.sort(files)).sort((one, other) => timeOf(other) - timeOf(one))
  }
}

export default defineConfig(({ mode }) => ({
  test: {
    include: [...(suites[mode] ?? [])],
    env: { TEST_MODE: mode, TEST_SEED: `${treeSeed()}` },
    exclude: [
      ...(mode === "test" ? [...configDefaults.exclude, ...long] : []),
      ...(TEST_ENGINE === "postgres" ? ofFile : [])
    ],
    // They judge times, and flood the machine.
    fileParallelism: mode === "test",
    globalSetup: ["test/lib/build.ts", "test/lib/postgresServer.ts"],
    // Four processes on two cores: suites of a daemon wait for it most of the time. Each process loads the program once
    // for all suites, which takes a third of the time that loading it for each does. None ends before the others: tinypool
    // 1.1 may end an idle process twice, which vitest reports as an error.
    pool: "forks",
    isolate: false,
    setupFiles: "test/lib/setup.ts",
    poolOptions: { forks: { minForks: 4, maxForks: 4, execArgv: ["--max-semi-space-size=64"] } },
    sequence: { sequencer: SlowestFirst },
    // Within a suite, concurrent tests share its chains and its core.
    maxConcurrency: 4,
    // What hangs ends: no measure of speed, on any machine. Floods of a minute each take most of an hour.
    testTimeout: mode === "load" ? 7_200_000 : 300_000,
    hookTimeout: 300_000,
    teardownTimeout: 20_000,
    retry: 0
  }
}))
