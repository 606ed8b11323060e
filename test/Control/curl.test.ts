import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { operationPath } from "../../src/Control/socketProtocol.ts"
import { isHere, reasonOf } from "../lib/programs.ts"
import { testSettings } from "../lib/settings.ts"
import { temporaryDatabase } from "../lib/store.ts"
import { root } from "../lib/tilld.ts"
import { besideDaemon, logged, nameOf, samples } from "./world.ts"

interface Answered {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: what an answer is, each test says
  readonly body: any
}

/** Asks by curl, as an operator does at a shell. */
const curlAt =
  (socket: string) =>
  (path: string, ...options: ReadonlyArray<string>) =>
    Effect.async<Answered>((resume) => {
      const args = ["-sS", "--unix-socket", socket, "-w", "\n%{http_code}", ...options, `http://tilld${path}`]
      execFile("curl", args, (error, stdout) => {
        if (error !== null) throw error
        const lines = stdout.trimEnd().split("\n")
        resume(Effect.succeed({ status: Number(lines.pop()), body: JSON.parse(lines.join("\n")) }))
      })
    })

const hash = `0x${"1".repeat(64)}`
const elsewhere = ["-d", "chain=base", "-d", "mode=live"]

const needsCurl = it.scopedLive.skipIf(!isHere("curl"))
const named = (what: string) => (isHere("curl") ? what : `${what} [${reasonOf("curl")}]`)

needsCurl(named("curl --unix-socket carries out every operation, and reads with a query"), () =>
  Effect.gen(function* () {
    const settings = testSettings(yield* temporaryDatabase, { alerts: { url: "http://127.0.0.1:1/" } })
    yield* besideDaemon(settings, function* () {
      const curl = curlAt(`${settings.database.path}.sock`)
      for (const sample of samples) {
        const path = operationPath(sample.operation)
        if (!("act" in sample)) {
          const query = new URLSearchParams(Object.entries(sample.input).map(([name, value]) => [name, String(value)]))
          const read = yield* curl(`${path}?${query}`)
          expect(read.status, `${nameOf(sample)}: ${JSON.stringify(read.body)}`).toBe(200)
        }
        const asked = yield* curl(path, "--json", JSON.stringify(sample.input), "-H", "x-tilld-user: carol%20%E2%9C%93")
        expect(asked.status, `${nameOf(sample)}: ${JSON.stringify(asked.body)}`).toBe(200)
      }
      const rows = yield* logged
      expect(new Set(rows.map(({ act }) => act))).toEqual(new Set(samples.flatMap(({ act }) => act ?? [])))
      expect(new Set(rows.map(({ who }) => who))).toEqual(new Set(["carol ✓"]))
    })
  })
)

needsCurl(named("curl gets each noun in the shape of the API, with whose it is, and errors in the API's shape"), () =>
  Effect.gen(function* () {
    const settings = testSettings(yield* temporaryDatabase)
    yield* besideDaemon(settings, function* () {
      const curl = curlAt(`${settings.database.path}.sock`)
      const payments = yield* curl("/payments/list?mode=test&status=expired&limit=1")
      expect(payments.body).toMatchObject([{ id: `pay_${"2".repeat(22)}`, account: "default", mode: "test" }])
      const exceptions = yield* curl("/payments/exceptions")
      expect(exceptions.body).toHaveLength(2)
      expect(exceptions.body[0]).toMatchObject({ kind: "late", detectedAt: "1970-01-01T00:00:03.000Z", mode: "test" })
      const deliveries = yield* curl("/webhooks/list?status=failed")
      expect(deliveries.body).toMatchObject([{ event: `evt_${"d".repeat(22)}`, attemptsMade: 6, attempts: [] }])
      expect((yield* curl("/webhooks/endpoints")).body).toMatchObject([{ events: ["payment.created"] }])
      expect((yield* curl("/keys/list")).body).toMatchObject([{ id: "key_1", permissions: ["payments:read"] }])
      expect((yield* curl("/accounts/list")).body).toMatchObject([{ id: "default" }])

      // A form is read as a query is.
      const made = yield* curl("/keys/create", "-d", "mode=test", "-d", "name=till", "-d", "ips=192.0.2.1")
      expect(made).toMatchObject({ status: 200, body: { mode: "test", key: expect.stringMatching(/^svc_test_/) } })
      const listed = (yield* curl("/")).body
      expect(listed.map(({ path }: { readonly path: string }) => path).toSorted()).toEqual(
        samples.map(({ operation }) => operationPath(operation)).toSorted()
      )
      expect(listed).toContainEqual(
        expect.objectContaining({
          path: "/keys/revoke",
          access: "administer",
          input: { id: { about: expect.any(String), type: "text", optional: false } },
          refusals: expect.arrayContaining(["NOT_FOUND"])
        })
      )
      const fields = listed.find(({ path }: { readonly path: string }) => path === "/webhooks/redeliver/range").input
      expect(fields).toMatchObject({
        mode: { type: "word", optional: true, of: ["live", "test"] },
        after: { about: expect.stringContaining("`next` of the page before"), type: "text" }
      })
      const described = listed.flatMap(({ input }: { readonly input: object }) => Object.values(input))
      expect(described.filter(({ about }: { readonly about: string }) => about === "")).toEqual([])

      const range = ["-d", "since=1d", "-d", "status=delivered"]
      const first = yield* curl("/webhooks/redeliver/range", ...range)
      expect(first.body).toMatchObject({ ordered: 0, next: expect.stringMatching(/^test\.0\.0$/) })
      const second = yield* curl("/webhooks/redeliver/range", ...range, "-d", `after=${first.body.next}`)
      expect(second.body).toEqual({ ordered: 0, due: 0, refused: 0 })
      expect((yield* curl("/webhooks/redeliver/range", ...range, "-d", "after=1")).body.error.details).toEqual([
        { path: "after", message: "must be `next` of the page before" }
      ])

      // What the configuration does not have is refused, and does not end the daemon.
      for (const act of [
        curl("/rescan", "-d", "from=1", ...elsewhere),
        curl("/claim", "-d", `txHash=${hash}`, ...elsewhere)
      ]) {
        expect((yield* act).body.error).toMatchObject({
          code: "REPAIR_REFUSED",
          message: expect.stringContaining("[chains.base.live] is not configured; there are ")
        })
      }
    })
  })
)

needsCurl(named("the commands of docs/access.md do what they say"), () =>
  Effect.gen(function* () {
    const settings = testSettings(yield* temporaryDatabase)
    const socket = `${settings.database.path}.sock`
    const documented = readFileSync(join(root, "docs/access.md"), "utf8").match(/^curl .*$/gm) ?? []
    expect(documented).toHaveLength(3)
    yield* besideDaemon(settings, function* () {
      const answers = yield* Effect.forEach(documented, (line) =>
        Effect.async<string>((resume) => {
          const command = line.replace("/var/lib/tilld/tilld.db.sock", socket).replace("pay_…", `pay_${"4".repeat(22)}`)
          execFile("bash", ["-c", command], (error, stdout) => {
            if (error !== null) throw error
            resume(Effect.succeed(stdout))
          })
        })
      )
      expect(answers.map((answer) => JSON.parse(answer))).toMatchObject([
        [{ status: "pending" }, { status: "pending" }],
        { mode: "test", key: expect.stringMatching(/^svc_test_/) },
        { status: "expired", failureReason: "cancelled" }
      ])
    })
  })
)
