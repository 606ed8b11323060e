import { type AuditedActJson, listAudit } from "../Auth/auditOperation.ts"
import { table } from "./Output.ts"
import { commandOf } from "./operationCommand.ts"

const whoOf = ({ account, claimed, mode, who }: AuditedActJson): string =>
  claimed ? `${who} (claimed)` : [who, ...(account === undefined ? [] : ["of", account]), mode ?? ""].join(" ").trim()

/** `tilld audit`: lists administrative acts. */
export const auditCommand = commandOf(listAudit, {
  print: (acts) =>
    table(
      ["ID", "AT", "WHO", "VIA", "ACT", "DETAIL"],
      acts.map((act) => [String(act.id), act.at, whoOf(act), act.via, act.act, JSON.stringify(act.detail)])
    ),
  explain: (acts, { limit }) => (acts.length < limit ? undefined : `There may be more: --before ${acts.at(-1)?.id}`)
})
