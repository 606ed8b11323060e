import type { Effect } from "effect"
import type { StoreUnavailable, Writer } from "../Sql.ts"
import { audited } from "./auditLog.ts"
import type { Caller, Operation } from "./operation.ts"

/** Carries out an operation; one that administers with its row in the audit log. */
export const carryOut = <In, InJson, Out, OutJson, E, R>(
  { audit, auditFirst, name, run }: Operation<In, InJson, Out, OutJson, E, R>,
  input: In,
  caller: Caller
): Effect.Effect<Out, E | StoreUnavailable, R | Writer> => {
  if (audit === undefined) return run(input, caller, () => undefined)
  const act = { act: name, detail: audit(input), ...(auditFirst ? { first: auditFirst } : {}) }
  return audited(caller.actor, act, (note) => run(input, caller, note))
}
