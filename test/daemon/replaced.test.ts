import { copyFileSync, existsSync, readFileSync, renameSync, statSync, utimesSync } from "node:fs"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { homeOn, rows, serve } from "../lib/daemon.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { tilld } from "../lib/tilld.ts"

const order = { chain: "base", currency: "USDC", amount: "25000000" } as const

it.scopedLive.each(["SIGTERM", "SIGKILL"] as const)(
  "the log of a database that was replaced is never played into the new file: %s",
  (signal) =>
    Effect.gen(function* () {
      const { home } = yield* homeOn("base")
      const { database } = home
      const env = { TILLD_CONFIG: home.config }
      const first = yield* serve(home)
      yield* first.create(order)
      yield* first.end("SIGTERM")
      expect(existsSync(`${database}.wal-of`)).toBe(false)

      const daemon = yield* serve(home)
      copyFileSync(database, `${database}.copy`)
      yield* daemon.create(order)
      renameSync(database, `${database}.former`)
      renameSync(`${database}.copy`, database)
      yield* daemon.end(signal)
      const files = [database, `${database}-wal`]
      const before = files.map((file) => readFileSync(file))

      const said = `${database} was replaced while tilld had another file open there`
      for (const [code, ...command] of [
        [2, "serve"],
        [2, "restore", `${database}.former`],
        [1, "backup", `${home.folder}/backup`],
        [1, "doctor"]
      ] as const) {
        const { stderr, stdout, ...ended } = yield* tilld(command, { env })
        expect({ ...ended, said: `${stdout}${stderr}` }, command.join(" ")).toMatchObject({
          code,
          said: expect.stringContaining(said)
        })
      }
      expect(files.map((file, i) => readFileSync(file).equals(before[i] ?? Buffer.of()))).toEqual([true, true])

      renameSync(database, `${database}.new`)
      renameSync(`${database}.former`, database)
      const again = yield* serve(home)
      expect(yield* rows(home, "SELECT id FROM payments")).toHaveLength(2)
      yield* again.end("SIGKILL")

      // A copy of both files is another database with its own log.
      for (const suffix of ["", "-wal"]) {
        copyFileSync(database + suffix, `${database}.copy${suffix}`)
        renameSync(`${database}.copy${suffix}`, database + suffix)
      }
      const copy = yield* serve(home)
      yield* copy.end("SIGTERM")
      expect(yield* rows(home, "SELECT id FROM payments")).toHaveLength(2)
    })
)

liveTest("nor into one that was copied over the file of a daemon that was killed", function* () {
  const { home } = yield* homeOn("base")
  const { database } = home
  const daemon = yield* serve(home)
  yield* daemon.create(order)
  yield* daemon.end("SIGKILL")
  const later = statSync(`${database}-wal`).mtimeMs / 1000 + 301
  utimesSync(database, later, later)
  for (const [code, command] of [
    [2, "serve"],
    [1, "doctor"]
  ] as const) {
    const { stderr, stdout, ...ended } = yield* tilld([command], { env: { TILLD_CONFIG: home.config } })
    expect({ ...ended, said: `${stdout}${stderr}` }).toMatchObject({
      code,
      said: expect.stringContaining(`${database} was written long after ${database}-wal`)
    })
  }
  utimesSync(`${database}-wal`, later, later)
  yield* serve(home)
  expect(yield* rows(home, "SELECT id FROM payments")).toHaveLength(1)
})
