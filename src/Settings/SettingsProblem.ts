import { Data } from "effect"
import type { Path } from "./configTree.ts"

/** A problem with the value at a path. */
export interface Fault {
  readonly path: Path
  readonly message: string
}

/** A problem as an operator reads it. `at`: a key's path, the name of an environment variable, or a line of the file. */
export interface SettingsProblem {
  readonly at: string
  readonly message: string
}

/** The configuration cannot be used. Lists all problems at once and shows no secret. */
export class SettingsInvalid extends Data.TaggedError("SettingsInvalid")<{
  readonly file: string
  readonly problems: ReadonlyArray<SettingsProblem>
}> {
  override get message(): string {
    const count = this.problems.length === 1 ? "one problem" : `${this.problems.length} problems`
    const lines = this.problems.map(({ at, message }) => `  ${at}: ${message}`)
    return [`The configuration ${this.file} has ${count}:`, ...lines].join("\n")
  }
}
