/** `tilld status`: what is wrong now, worst first. */
import { Clock, Data, Effect } from "effect"
import { readStatus } from "../Conditions/operations.ts"
import { quantityText } from "../lib/quantities.ts"
import { commandOf } from "./operationCommand.ts"

/** Customers or money are concerned now. What it is has been printed. */
class PagesOpen extends Data.TaggedError("PagesOpen")<{ readonly message: string }> {}

const lasting = (since: string, now: number): string => {
  const minutes = Math.floor((now - Date.parse(since)) / 60_000)
  if (minutes < 1) return "since a moment ago"
  return minutes < 120 ? `for ${quantityText(minutes, "minute")}` : `since ${since}`
}

const answered = (question: string, keys: ReadonlyArray<string>): string =>
  `${question} ${keys.length === 0 ? "no" : `YES, ${keys.join(", ")}`}`

const waiting = (standbys: ReadonlyArray<{ readonly node: string; readonly version: string }>): string =>
  standbys.length === 0
    ? "no other one waits"
    : `standby: ${standbys.map(({ node, version }) => `${node} (tilld ${version})`).join(", ")}`

export const statusCommand = commandOf(readStatus, {
  print: ({ auditedAt, conditions, moneyMissed, node, pid, salesRefused, standbys = [], startedAt, version }) =>
    Effect.map(Clock.currentTimeMillis, (now) =>
      [
        `tilld ${version}, process ${pid}, runs since ${startedAt}`,
        ...(node === undefined ? [] : [`node ${node} works; ${waiting(standbys)}`]),
        answered("Are sales refused?", salesRefused),
        `${answered("Is money missed?", moneyMissed)}; balances last compared with the ledger: ${auditedAt ?? "not yet"}`,
        ...(conditions.length === 0 ? ["Nothing is wrong."] : []),
        ...conditions.map(
          ({ key, remedy, severity, since, subject, summary }) =>
            `${severity.toUpperCase().padEnd(6)}  ${[key, subject].join(" ").trim()}, ${lasting(since, now)}: ${summary}. Remedy: ${remedy}`
        )
      ].join("\n")
    ),
  failure: ({ conditions }) => {
    const open = conditions.filter(({ severity }) => severity === "page").length
    return open === 0
      ? undefined
      : new PagesOpen({
          message: `${quantityText(open, "condition")} ${open === 1 ? "concerns" : "concern"} customers or money now`
        })
  }
})
