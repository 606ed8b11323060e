import { Command, Options } from "@effect/cli"
import { Option } from "effect"
import { type AuditView, ListAudit } from "../Control/auditRequest.ts"
import { common } from "./commonOptions.ts"
import { table } from "./Output.ts"
import { limitOf, moment } from "./options.ts"
import { printResult } from "./result.ts"

const whoOf = ({ account, claimed, mode, who }: AuditView): string =>
  claimed ? `${who} (claimed)` : [who, ...(account === undefined ? [] : ["of", account]), mode ?? ""].join(" ").trim()

const rendered = (acts: ReadonlyArray<AuditView>): string =>
  table(
    ["ID", "AT", "WHO", "VIA", "ACT", "DETAIL"],
    acts.map((act) => [String(act.id), act.at, whoOf(act), act.via, act.act, JSON.stringify(act.detail)])
  )

/** `tilld audit`: lists administrative acts. */
export const auditCommand = Command.make(
  "audit",
  {
    ...common,
    since: moment("since").pipe(
      Options.withDescription("Of this time or later: 2026-01-31T12:00:00Z, 2026-01-31, or 24h for so long ago"),
      Options.withDefault(0)
    ),
    before: Options.integer("before").pipe(
      Options.withPseudoName("ID"),
      Options.withDescription("The page of acts before the one with this ID"),
      Options.optional
    ),
    limit: limitOf(100)
  },
  (options) =>
    printResult(
      options,
      "audit",
      new ListAudit({
        since: options.since,
        limit: options.limit,
        ...Option.match(options.before, { onNone: () => ({}), onSome: (before) => ({ before }) })
      }),
      rendered,
      (acts) => (acts.length < options.limit ? undefined : `There may be more: --before ${acts.at(-1)?.id}`)
    )
).pipe(Command.withDescription("Show who administered what, newest first. A claimed name is the user's own word"))
