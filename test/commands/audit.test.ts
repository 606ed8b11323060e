import { join } from "node:path"
import { expect } from "@effect/vitest"
import { liveTest } from "../lib/scopedTest.ts"
import { installation } from "./installation.ts"

const newKey = Buffer.alloc(32, 9).toString("base64")

liveTest("tilld audit: who did what without a daemon, newest first, page by page", function* () {
  const { tilld } = yield* installation
  expect(yield* tilld(["audit"])).toMatchObject({ code: 2, stderr: expect.stringContaining("There is no database") })

  const { id } = JSON.parse((yield* tilld(["keys", "create", "--mode", "test", "--name", "till", "--json"])).stdout)
  yield* tilld(["keys", "revoke", id], { SUDO_USER: "\u001b[31mmallory" })
  yield* tilld(["webhooks", "secret", "--mode", "test"])
  expect((yield* tilld(["secrets", "rotate", "--new-key", "-"], {}, newKey)).code).toBe(0)

  const all = yield* tilld(["audit", "--json"])
  expect(all).toMatchObject({ code: 0, stderr: "" })
  const acts = JSON.parse(all.stdout)
  const by = { via: "direct", claimed: true, who: expect.stringMatching(/^alice as \w+$/), at: expect.any(String) }
  expect(acts).toEqual([
    { id: 4, ...by, act: "secrets rotate", detail: { fingerprint: expect.any(String) } },
    { id: 3, ...by, act: "webhooks secret", detail: { account: "default", mode: "test" } },
    { id: 2, ...by, who: expect.stringContaining("mallory"), act: "keys revoke", detail: { key: id } },
    { id: 1, ...by, act: "keys create", detail: expect.objectContaining({ key: id, name: "till", mode: "test" }) }
  ])
  expect(all.stdout).not.toMatch(/whsec_|svc_/)

  const shown = yield* tilld(["audit"])
  expect(shown.stdout).toMatch(/^ID +AT +WHO +VIA +ACT +DETAIL\n4 /)
  expect(shown.stdout).toMatch(
    /alice as \w+ \(claimed\) +direct +webhooks secret +\{"account":"default","mode":"test"\}/
  )
  expect(shown.stdout).not.toContain("\u001b")

  const page = yield* tilld(["audit", "--limit", "2", "--json"])
  expect(JSON.parse(page.stdout)).toEqual(acts.slice(0, 2))
  expect((yield* tilld(["audit", "--limit", "2"])).stderr).toContain("--before 3")
  expect(JSON.parse((yield* tilld(["audit", "--before", "3", "--json"])).stdout)).toEqual(acts.slice(2))
  expect(JSON.parse((yield* tilld(["audit", "--since", acts[1].at, "--json"])).stdout)).toEqual(acts.slice(0, 2))
  expect(JSON.parse((yield* tilld(["audit", "--since", "2h", "--json"])).stdout)).toEqual(acts)
  expect(JSON.parse((yield* tilld(["audit", "--since", "2100-01-01", "--json"])).stdout)).toEqual([])
})

liveTest("tilld audit: exit codes, help, and a socket where no one listens", function* () {
  const { folder, tilld } = yield* installation
  yield* tilld(["keys", "create", "--mode", "test", "--name", "till"])
  expect((yield* tilld(["audit", "--since", "yesterday"])).code).toBe(2)
  expect((yield* tilld(["audit", "--limit", "1001"])).code).toBe(2)
  expect(yield* tilld(["audit", "--before", "99"])).toMatchObject({
    code: 1,
    stdout: "",
    stderr: expect.stringContaining("There is no act 99")
  })
  expect((yield* tilld(["--help"])).stdout).toMatch(/audit/)
  expect((yield* tilld(["audit", "--help"])).stdout).toMatch(/--since.*[\s\S]*--before/)

  const nobody = { TILLD_SOCKET: join(folder, "read.sock") }
  const refused = yield* tilld(["audit"], nobody)
  expect(refused).toMatchObject({ code: 2, stdout: "" })
  expect(refused.stderr).toContain(`No daemon listens at ${folder}/read.sock`)
  // A configuration on the command line goes before the environment's socket.
  expect((yield* tilld(["audit", "--config", join(folder, "tilld.toml")], nobody)).code).toBe(0)
})
