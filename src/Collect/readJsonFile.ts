import { readFileSync, statSync } from "node:fs"
import { Effect, ParseResult, Schema } from "effect"
import { shownLine } from "../lib/text.ts"
import { type CollectRefused, collectRefusal } from "./Plan.ts"

const mostBytes = 100_000_000

/** Reads a file of text: of a hundred megabytes at most, far more than the largest signed plan has. */
export const readTextFile = (path: string): Effect.Effect<string, CollectRefused> =>
  Effect.try({
    try: () => {
      const found = statSync(path)
      if (!found.isFile()) throw new Error("it is not a regular file: write it into one first")
      if (found.size > mostBytes) throw new Error(`it has ${found.size} bytes, more than ${mostBytes}`)
      return readFileSync(path, "utf8")
    },
    catch: (cause) => collectRefusal(`${path} cannot be read: ${cause instanceof Error ? cause.message : cause}`)
  })

/** Reads a file of JSON that has this form, and nothing else. */
export const readJsonFile = <A, I>(
  path: string,
  form: Schema.Schema<A, I> & { readonly fields: { readonly format: Schema.Schema.AnyNoContext } },
  what: string
): Effect.Effect<A, CollectRefused> =>
  readTextFile(path).pipe(
    // Of another kind of file, that it is one; and no more than one problem, of which a hostile file may have millions.
    Effect.tap(Schema.decodeUnknown(Schema.parseJson(Schema.Struct({ format: form.fields.format })))),
    Effect.flatMap(Schema.decodeUnknown(Schema.parseJson(form), { onExcessProperty: "error" })),
    Effect.catchTag("ParseError", (error) => {
      const [issue] = ParseResult.ArrayFormatter.formatErrorSync(error)
      // Names are those of the file, and the file may be an attacker's.
      const problem = shownLine(`${shownLine(issue?.path.join(".") ?? "", 60)} ${issue?.message ?? ""}`)
      return collectRefusal(`${path} is not ${what} of this version of tilld: ${problem}`)
    }),
    Effect.catchAllDefect((defect) =>
      /call stack/.test(`${defect}`)
        ? collectRefusal(`${path} is not ${what} of this version of tilld: it is nested too deeply`)
        : Effect.die(defect)
    )
  )
