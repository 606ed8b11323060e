import { Schema } from "effect"

/** What the daemon knows of itself and `tilld doctor` cannot see from outside. */
const DaemonHealth = Schema.Struct({
  version: Schema.String,
  pid: Schema.Int,
  /** Of its process, which owns its files. */
  uid: Schema.Int,
  /** Where its index mark is: the default depends on its environment. */
  markFolder: Schema.String,
  /** Chains and workers that are not ready, with the reason. */
  unready: Schema.Array(Schema.Struct({ name: Schema.String, reason: Schema.String })),
  /** Chains and workers that are ready, and what is wrong with them: a provider that others deny, a log without a reader. */
  troubled: Schema.optionalWith(Schema.Array(Schema.Struct({ name: Schema.String, reason: Schema.String })), {
    default: () => []
  }),
  /** Why it writes nothing: the database's path names other files than it has open. Absent where they are its own. */
  lostFiles: Schema.optional(Schema.String)
})

/** Asks the daemon how it is. Commands without a daemon do not carry it out. */
export class ReadHealth extends Schema.TaggedRequest<ReadHealth>()("ReadHealth", {
  payload: {},
  success: DaemonHealth,
  failure: Schema.Never
}) {}
