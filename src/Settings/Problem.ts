import { Data } from "effect"
import type { Path } from "./tree.ts"

/** What is wrong with the value at a path. */
export interface Fault {
  readonly path: Path
  readonly message: string
}

/** A fault as an operator reads it. `at` is a key's path, an environment variable's name or a line of the file. */
export interface SettingsProblem {
  readonly at: string
  readonly message: string
}

/** The configuration cannot be used; every problem is named at once, and no secret is shown. */
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
