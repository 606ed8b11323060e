import { copyFileSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { request } from "undici"
import { type Home, homeOn, opened, waitForLog } from "../lib/daemon.ts"
import { administer, login, postgresServer, urlOf } from "../lib/postgres.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { temporaryFolder } from "../lib/store.ts"
import { startTilld, tilld } from "../lib/tilld.ts"

interface NodeStatus {
  readonly node?: string
  readonly standbys?: ReadonlyArray<{ readonly node: string; readonly version: string }>
}

liveTest("a standby says who works: to commands, at its listener and to Prometheus", function* () {
  const port = yield* postgresServer()
  yield* administer(port, "postgres", "CREATE DATABASE shop")
  const { home: plain } = yield* homeOn("base")
  const text = readFileSync(plain.config, "utf8")
  const nodeCalled = (name: string) =>
    Effect.map(temporaryFolder, (folder): Home => {
      const config = join(folder, "tilld.toml")
      const store = `[database]
engine = "postgres"
url = "${urlOf(port, "shop")}"
password_file = "password"
mark_folder = "${folder}/../marks-of-${folder.split("/").at(-1)}"
[node]
name = "${name}"
folder = "${folder}"
[admin]
port = 0`
      writeFileSync(config, text.replace(/\[database\]\npath = .*/, store))
      copyFileSync(join(plain.folder, "master.key"), join(folder, "master.key"))
      writeFileSync(join(folder, "password"), login.password, { mode: 0o600 })
      return { ...plain, config, folder, database: join(folder, "tilld.db") }
    })
  const [one, two] = [yield* nodeCalled("one"), yield* nodeCalled("two")]
  const running = yield* startTilld(["serve", "--config", one.config])
  yield* opened(one, running)
  const waiting = yield* startTilld(["serve", "--config", two.config])
  const { annotations } = yield* waitForLog(waiting, "this node is a standby")
  const textAt = (at: unknown, path: string) =>
    Effect.promise(async () => {
      const { body, statusCode } = await request(`http://127.0.0.1:${at}${path}`)
      return [statusCode, await body.text()] as const
    })
  expect(yield* textAt(annotations["port"], "/readyz")).toEqual([
    503,
    JSON.stringify({ ready: false, reason: "standby; active is one" })
  ])
  expect((yield* textAt(annotations["operatorPort"], "/metrics"))[1]).toContain('tilld_node_active{node="two"} 0\n')
  // To anybody it has no metrics.
  expect((yield* textAt(annotations["port"], "/metrics"))[0]).toBe(503)
  const { annotations: listener } = yield* waitForLog(running, "listening for the operator")
  expect((yield* textAt(listener["port"], "/metrics"))[1]).toContain('tilld_node_active{node="one"} 1\n')

  const statusOf = (home: Home, ...words: ReadonlyArray<string>) => tilld(["status", "--config", home.config, ...words])
  const seen: NodeStatus = yield* Effect.repeat(
    Effect.map(statusOf(one, "--json"), ({ stdout }) => JSON.parse(stdout) as NodeStatus),
    { until: ({ standbys = [] }) => standbys.length > 0 }
  )
  expect(seen).toMatchObject({ node: "one", standbys: [{ node: "two" }] })
  expect((yield* statusOf(one)).stdout).toMatch(/^node one works; standby: two \(tilld \S+\)$/m)

  const atStandby = yield* tilld(["status", "--config", two.config], {
    env: { TILLD_SERVER__PORT: `${annotations["port"]}` }
  })
  expect(atStandby).toMatchObject({
    stdout: "",
    stderr: expect.stringContaining("two, waits as a standby; active is one")
  })
  expect(atStandby.code).not.toBe(0)
  const key = join(two.folder, "next.key")
  writeFileSync(key, Buffer.alloc(32, 9).toString("base64"), { mode: 0o600 })
  for (const words of [
    ["backup", "x"],
    ["restore", "x"],
    ["secrets", "rotate", "--new-key", key]
  ]) {
    const refused = yield* tilld([...words, "--config", two.config])
    expect(refused, words.join(" ")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("The data is in PostgreSQL")
    })
  }
})
