import { Schema } from "effect"
import { longestPage } from "../Auth/inputFields.ts"
import type { FieldProblem } from "../Domain/ApiError.ts"
import { Mode } from "../Domain/Chain.ts"

export const PageLimit = Schema.Int.pipe(Schema.between(1, longestPage))
/** The latest time that a JavaScript Date can represent, Unix milliseconds. */
export const latestMoment = 8.64e15
/** A time in Unix milliseconds. */
export const Moment = Schema.Int.pipe(Schema.between(0, latestMoment))
/** Both modes, or one. */
export const Modes = Schema.Array(Mode).pipe(Schema.maxItems(2))

/** The daemon and the command are of different versions. */
export class NotUnderstood extends Schema.TaggedError<NotUnderstood>()("NotUnderstood", { message: Schema.String }) {
  static readonly of = () =>
    new NotUnderstood({
      message: "The daemon does not understand this command: it runs another version of tilld; restart it"
    })
  /** A command of this version has checked its input. */
  static readonly because = (problems: ReadonlyArray<FieldProblem>) =>
    new NotUnderstood({
      message: `The daemon refuses this command: ${problems.map(({ message, path }) => `${path} ${message}`.trim()).join("; ")}. If it runs another version of tilld, restart it`
    })
}

/** The request came over the read-only socket, and administers. */
export class Forbidden extends Schema.TaggedError<Forbidden>()("Forbidden", { message: Schema.String }) {
  static readonly at = (path: string) =>
    new Forbidden({
      message:
        `Not allowed: ${path} takes commands that only read, and this one does more. Run it as a user of the daemon's ` +
        "group, without TILLD_SOCKET"
    })
}
