import { existsSync, rmSync } from "node:fs"
import { expect } from "@effect/vitest"
import { homeOn, serve, waitForLog } from "../lib/daemon.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { startTilld, tilld } from "../lib/tilld.ts"

const order = { chain: "base", currency: "USDC", amount: "25000000" } as const

liveTest(
  "a removed database is neither backed up by halves nor created again, except with serve --new-database",
  function* () {
    const { home } = yield* homeOn("base")
    const config = ["--config", home.config]
    const daemon = yield* serve(home)
    const former = [yield* daemon.create(order), yield* daemon.create(order)]

    rmSync(`${home.database}-wal`)
    const backup = yield* tilld(["backup", `${home.folder}/new.db`, ...config])
    expect(backup).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^tilld: tilld serve says: .*-wal was removed/)
    })
    expect(existsSync(`${home.database}-wal`)).toBe(false)
    yield* daemon.end("SIGKILL")

    for (const suffix of ["", "-shm"]) rmSync(home.database + suffix)
    const missing = `tilld: The database ${home.database} is missing although 2 addresses were given out from it: restore a backup with tilld restore FILE; to begin with an empty database, start it once with tilld serve --new-database\n`
    expect(yield* tilld(["serve", ...config])).toMatchObject({ code: 2, stderr: missing })
    expect(existsSync(home.database)).toBe(false)

    const restarted = yield* startTilld(["serve", "--new-database", ...config])
    yield* waitForLog(restarted, "listening")
    yield* restarted.end("SIGTERM")
    const later = yield* serve(home)
    const { address } = yield* later.create(order)
    expect(former.map((payment) => payment.address)).toEqual([home.address(0), home.address(1)])
    expect(address).toBe(home.address(1002))
  }
)
