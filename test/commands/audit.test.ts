import { join } from "node:path"
import { expect } from "@effect/vitest"
import { liveTest } from "../lib/scopedTest.ts"
import { besideDaemon, installation } from "./installation.ts"

const newKey = Buffer.alloc(32, 9).toString("base64")

liveTest("tilld audit: who did what, beside a daemon and without one, newest first", function* () {
  const { start, tilld } = yield* installation
  const daemon = yield* start()
  const { id } = JSON.parse((yield* tilld(["keys", "create", "--mode", "test", "--name", "till", "--json"])).stdout)
  yield* tilld(["keys", "revoke", id], { SUDO_USER: "\u001b[31mmallory" })
  yield* tilld(["webhooks", "secret", "--mode", "test"])
  yield* daemon.end("SIGTERM")
  const rotated = yield* tilld(["secrets", "rotate", "--new-key", "-"], {}, newKey)
  expect(rotated).toMatchObject({ code: 0, stderr: expect.not.stringContaining("alerts.url") })
  yield* start({ TILLD_MASTER_KEY: newKey })

  const all = yield* tilld(["audit", "--json"])
  const acts: ReadonlyArray<{ readonly act: string; readonly who: string }> = JSON.parse(all.stdout)
  expect(acts.map(({ act }) => act)).toEqual(["secrets rotate", "webhooks secret", "keys revoke", "keys create"])
  expect(acts[0]).toMatchObject({ via: "direct", claimed: true, detail: { fingerprint: expect.any(String) } })
  expect(acts[2]?.who).toContain("mallory")

  const shown = yield* tilld(["audit"])
  expect(shown.stdout).toMatch(/^ID +AT +WHO +VIA +ACT +DETAIL\n4 /)
  expect(shown.stdout).toMatch(
    /alice as \w+ \(claimed\) +socket +webhooks secret +\{"account":"default","mode":"test"\}/
  )
  expect(shown.stdout).not.toContain("\u001b")

  expect((yield* tilld(["audit", "--limit", "2"])).stderr).toContain("--before 3")
})

liveTest("tilld audit: exit codes, and a socket where no one listens", function* () {
  const { folder, tilld } = yield* besideDaemon
  expect(yield* tilld(["audit", "--before", "99"])).toMatchObject({
    code: 1,
    stdout: "",
    stderr: expect.stringContaining("There is no act 99")
  })
  const nobody = { TILLD_SOCKET: join(folder, "read.sock") }
  const refused = yield* tilld(["audit"], nobody)
  expect(refused).toMatchObject({ code: 2, stdout: "" })
  expect(refused.stderr).toContain(`none listens at ${folder}/read.sock: `)
  expect(refused.stderr).toMatch(/; or correct TILLD_SOCKET$/m)
  // A configuration on the command line goes before the environment's socket.
  expect((yield* tilld(["audit", "--config", join(folder, "tilld.toml")], nobody)).code).toBe(0)
})
