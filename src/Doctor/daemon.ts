import { existsSync } from "node:fs"
import packageJson from "../../package.json" with { type: "json" }
import type { readStatus } from "../Conditions/operations.ts"
import type { ShownCondition } from "../Domain/Condition.ts"
import type { SettingsShape } from "../Settings.ts"
import { holderOf } from "../Sql/InstanceLock.ts"
import { areNearlyAllOpen, descriptorsOf } from "../Telemetry/host.ts"
import { type Finding, fail, ok, warn } from "./Finding.ts"

/** The daemon's own report, through its socket. */
export type DaemonStatus = typeof readStatus.output.Type

/** A process works on the database, and does not respond. */
export interface Silent {
  /** The known facts about it. */
  readonly silent: string
  readonly remedy?: string
}

/** The health of the running daemon; undefined where none runs, or why it could not be asked. */
export type AskedDaemon = DaemonStatus | Silent | undefined

export const isHealth = (asked: AskedDaemon): asked is DaemonStatus => asked !== undefined && "pid" in asked

const name = "daemon"
const log = "journalctl -u tilld"

const descriptorsText = (pid: number | undefined): string | undefined => {
  const found = pid === undefined ? undefined : descriptorsOf(pid)
  return found === undefined || !areNearlyAllOpen(found)
    ? undefined
    : `${found.open} of its ${found.limit} file descriptors are open`
}

/**
 * The facts about a daemon without a response, from the lock of its database.
 *
 * @param asked the error; undefined where nothing listens at its socket
 */
export const withoutAnswer = (database: string, asked: Silent | undefined): AskedDaemon => {
  const holder = holderOf(database)
  if (holder === undefined) return asked
  const { command = "serve", pid } = holder
  const who = pid === undefined ? "a process that cannot be seen from here" : `process ${pid}`
  if (command !== "serve") {
    const silent = `${who}, tilld ${command}, works on the database, which is not examined meanwhile`
    return asked ?? { silent, remedy: "wait for it, or end it, and run this again" }
  }
  if (asked === undefined) {
    const silent = `${who} starts, or waits for something: it does not answer at its socket yet`
    return { silent, remedy: `${log} says for what` }
  }
  const full = descriptorsText(pid)
  const silent = `${who} runs: ${[asked.silent, ...(full === undefined ? [] : [full])].join("; ")}`
  return full === undefined ? { ...asked, silent } : { silent, remedy: "raise LimitNOFILE and restart it" }
}

/**
 * Whether the database may be opened. An unresponsive daemon may have another file open than the one at the path, and
 * SQLite would create files that the daemon then takes for its own. One that has lost its files reports that itself.
 */
export const mayOpen = (asked: AskedDaemon): boolean =>
  asked === undefined || (isHealth(asked) && asked.lostFiles === undefined)

export const findingOf = ({
  key,
  remedy,
  severity,
  subject,
  summary
}: Omit<typeof ShownCondition.Type, "since">): Finding =>
  (severity === "page" ? fail : warn)([key, subject].join(" ").trim(), summary, remedy)

/** Findings about the daemon of a database that answered, or that could not be asked. */
export const examineDaemon = (asked: DaemonStatus | Silent, version = packageJson.version): ReadonlyArray<Finding> => {
  if (!isHealth(asked)) return [fail(name, asked.silent, asked.remedy)]
  const runs = `process ${asked.pid} runs version ${asked.version}`
  return [
    asked.version === version
      ? ok(name, runs)
      : warn(name, `${runs}, and this command is ${version}`, "restart it to run what is installed"),
    ...asked.conditions.map(findingOf)
  ]
}

/** Where no daemon runs: the other findings may be the reason, and come first. */
export const examineDown = ({ database: { path } }: SettingsShape, others: ReadonlyArray<Finding>): Finding => {
  const isBroken = others.some(({ status }) => status === "fail")
  if (!existsSync(path) && !isBroken) return warn(name, "it has not run yet", "systemctl enable --now tilld")
  const start = `systemctl start tilld; ${log} -p err says why it ended`
  return fail(name, "it is down", isBroken ? `mend what is said above, then ${start}` : start)
}
