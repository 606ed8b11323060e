import { Schema } from "effect"
import type { FieldProblem } from "../Domain/ApiError.ts"

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
        `Not allowed: ${path} takes commands that only read, and this one does more. Use the socket beside the ` +
        "database, as a user of the daemon's group; a command, without TILLD_SOCKET"
    })
}
