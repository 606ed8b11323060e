import { join } from "node:path"
import { NodeFileSystem } from "@effect/platform-node"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { startReceiver, verifySignature } from "../../src/Sandbox/Receiver.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { installation } from "./installation.ts"

liveTest(
  "a test message arrives signed with the secret that is printed, and one that is refused is said to be",
  function* () {
    const { folder, start, tilld } = yield* installation
    const caFile = join(folder, "ca.pem")
    const receiver = yield* startReceiver({ caFile }).pipe(Effect.provide(NodeFileSystem.layer))
    const silent = yield* start()
    const off = yield* tilld(["alerts", "test"])
    expect(off).toMatchObject({ code: 1, stderr: expect.stringContaining("set alerts.url in the configuration") })

    const env = { TILLD_ALERTS__URL: `${receiver.url}/alerts`, TILLD_WEBHOOKS__EXTRA_CA_FILE: caFile }
    yield* silent.end("SIGTERM")
    yield* start(env)
    const { stdout: secret } = yield* tilld(["alerts", "secret"])
    expect(secret).toMatch(/^whsec_\S{44}\n$/)
    const sent = yield* tilld(["alerts", "test"])
    expect(sent).toMatchObject({ code: 0, stdout: expect.stringMatching(/^alr_\S+ {2}alerts.url answered 204\n$/) })
    const request = yield* receiver.take
    expect(verifySignature(request, secret.trim())).toBe(true)
    expect(JSON.parse(request.body.toString())).toMatchObject({ type: "alert.test", alert: { key: "test" } })

    yield* receiver.behave(() => 500)
    const refused = yield* tilld(["alerts", "test", "--json"])
    expect(refused.code).toBe(1)
    expect(JSON.parse(refused.stdout)).toMatchObject({ status: 500 })
  }
)
