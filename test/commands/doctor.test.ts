import { expect, it } from "vitest"
import { configuration, renderFindings } from "../../src/commands/doctor.ts"
import type { AskedDaemon } from "../../src/Doctor/daemon.ts"
import { fail, ok, warn } from "../../src/Doctor/Finding.ts"
import { testSettings } from "../lib/settings.ts"

const fine = [ok("disk", "12 GB free"), ok("clock", "in step")]

it("the doctor begins with a summary, and shows problems, then warnings, then what is fine", () => {
  expect(
    renderFindings([
      ...fine,
      warn("database", "it is not there yet", "start tilld"),
      fail("price ETH", "none", "add a source")
    ])
  ).toBe(
    [
      "1 problem, 1 warning, 4 checks",
      "FAIL  price ETH: none. Remedy: add a source",
      "WARN  database: it is not there yet. Remedy: start tilld",
      "OK    disk: 12 GB free",
      "OK    clock: in step"
    ].join("\n")
  )
})

it("the doctor joins a finding and its remedy with one full stop", () => {
  const [, ...lines] = renderFindings([
    fail("daemon: store", "it needs another file..", "its log"),
    fail("a", "b.")
  ]).split("\n")
  expect(lines).toEqual(["FAIL  daemon: store: it needs another file. Remedy: its log", "FAIL  a: b."])
})

it("the doctor says that what it examines is the file, where the daemon runs with another configuration", () => {
  const health = {
    ...{ version: "1", pid: 7, uid: 0, startedAt: "", markFolder: "", lostFiles: undefined },
    ...{ salesRefused: [], moneyMissed: [] }
  }
  const differs = {
    key: "configuration_differs",
    subject: "",
    severity: "ticket",
    summary: "",
    remedy: "",
    since: ""
  } as const
  const said = (daemon: AskedDaemon) => configuration("tilld.toml", testSettings(""), daemon).finding
  const usual = "tilld.toml: chains base.test"
  expect([said(undefined), said({ silent: "EACCES" }), said({ ...health, conditions: [] })]).toEqual([
    usual,
    usual,
    usual
  ])
  expect(said({ ...health, conditions: [differs] })).toBe(
    "tilld.toml as it is now, with which the daemon does not run yet: chains base.test"
  )
})

it("the doctor says in one line that all is fine", () => {
  expect(renderFindings(fine).split("\n")[0]).toBe("all 2 checks are fine")
})
