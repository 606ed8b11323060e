import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { configPathOf, Invocation } from "../../src/Control/Invocation.ts"
import { replaceFs } from "../lib/replacedFs.ts"
import { liveTest } from "../lib/scopedTest.ts"

liveTest(
  "the configuration is the one that is named, else that of the working folder, else the service's",
  function* () {
    const found: Array<string> = []
    yield* replaceFs({ existsSync: ((path: string) => found.includes(path)) as never })
    const path = (given?: string, env = {}) =>
      Effect.provideService(configPathOf(given), Invocation, { env, user: "somebody" })
    expect(yield* path()).toBe("config/tilld.toml")
    found.push("/etc/tilld/tilld.toml")
    expect(yield* path()).toBe("/etc/tilld/tilld.toml")
    found.push("config/tilld.toml")
    expect(yield* path()).toBe("config/tilld.toml")
    expect(yield* path(undefined, { TILLD_CONFIG: "named.toml" })).toBe("named.toml")
    expect(yield* path("given.toml", { TILLD_CONFIG: "named.toml" })).toBe("given.toml")
  }
)
