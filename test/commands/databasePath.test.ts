import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { expect } from "@effect/vitest"
import { hdWallet } from "../../src/Settings/hdWallet.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { testXpub } from "../lib/settings.ts"
import { installation } from "./installation.ts"

liveTest("a missing folder of the database is reported first, and not created", function* () {
  const { database, tilld } = yield* installation
  const folder = dirname(database)
  rmSync(folder, { recursive: true })
  const finding = `the folder ${folder} of database.path does not exist`
  const checked = yield* tilld(["config", "check"])
  expect(checked).toMatchObject({ code: 0, stdout: expect.stringMatching(new RegExp(`^Warning: ${finding}: correct`)) })
  const examined = yield* tilld(["doctor", "--json"])
  expect(examined.code).toBe(1)
  expect(JSON.parse(examined.stdout).findings).toContainEqual(
    expect.objectContaining({ status: "fail", name: "database", finding })
  )
  // Not the master key, which would be there.
  const refused = yield* tilld(["serve"], { TILLD_MASTER_KEY: "" })
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining(`The folder ${folder} of database.path`) })
  expect(refused.stderr).not.toContain("master key")
  expect(existsSync(folder)).toBe(false)
})

liveTest("another database that has assigned the wallet's addresses is named before the start", function* () {
  const { folder, tilld } = yield* installation
  const marks = join(folder, "marks")
  const env = { TILLD_DATABASE__MARK_FOLDER: marks }
  mkdirSync(marks)
  const { fingerprint } = hdWallet(testXpub)
  const mark = (database: string, wallets: Record<string, number>) =>
    JSON.stringify({ tokens: ["a"], wallets, database })
  writeFileSync(join(marks, "numbering-0123456789abcdef.json"), mark("/old/tilld.db", { [fingerprint]: 7 }))
  writeFileSync(join(marks, "numbering-0123456789abcde0.json"), mark("/older/tilld.db", { [fingerprint]: 3, other: 9 }))
  const finding = `/old/tilld.db has handed out addresses of wallet ${fingerprint} up to index 6: the next start goes on at 1007`
  const remedy = "point database.path back, if this is not meant"
  const warning = `Warning: ${finding}: ${remedy}\n`
  const checked = yield* tilld(["config", "check"], env)
  expect(checked).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Warning: .*\n\S+tilld.toml is valid/) })
  expect(checked.stdout).toContain(warning)
  expect(JSON.parse((yield* tilld(["config", "check", "--json"], env)).stdout)).toMatchObject({
    valid: true,
    warnings: [`${finding}: ${remedy}`]
  })
  const { findings } = JSON.parse((yield* tilld(["doctor", "--json"], env)).stdout)
  expect(findings).toContainEqual({ status: "warn", name: "address numbering", finding, remedy })
})
