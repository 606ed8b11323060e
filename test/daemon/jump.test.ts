import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { type Home, homeOn, rows, serveHere } from "../lib/daemon.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { tilld, tilldJson } from "../lib/tilld.ts"

const usdc = { chain: "optimism", currency: "USDC", amount: "25000000" } as const

const jump = (home: Home, ...args: ReadonlyArray<string>) =>
  tilldJson<ReadonlyArray<object>>(["addresses", "jump", "--config", home.config, ...args])
const usedBy = ["the configuration (wallets.test)"]

liveTest(
  "tilld addresses jump skips addresses beside a daemon and without one, whose next start skips them",
  function* () {
    const { home } = yield* homeOn("optimism")
    const daemon = yield* serveHere(home)
    yield* Effect.replicateEffect(daemon.create(usdc), 2)
    expect(yield* jump(home, "--by", "30")).toMatchObject([{ from: 2, next: 32, usedBy }])
    expect((yield* daemon.create(usdc)).address).toBe(home.address(32))
    yield* daemon.end("SIGTERM")
    expect(yield* jump(home)).toMatchObject([{ from: 33, next: 1033, usedBy }])
    const { code, stdout } = yield* tilld(["addresses", "jump", "--by", "1", "--config", home.config])
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining("1034") })
    const refused = yield* tilld(["addresses", "jump", "--by", "50001", "--config", home.config])
    expect(refused).toMatchObject({ code: 2, stdout: "" })
    const again = yield* serveHere(home, daemon.key)
    expect((yield* again.create(usdc)).address).toBe(home.address(1034))
    expect(yield* rows(home, "SELECT count(*) AS skipped FROM gap_addresses")).toEqual([{ skipped: 1031 }])
  }
)
