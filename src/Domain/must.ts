import type { Schema } from "effect"

/** A field whose every fault is answered with its rule, which is its description too, and never with what was sent. */
export const must = <A, I, R>(rule: string, schema: Schema.Schema<A, I, R>): Schema.Schema<A, I, R> =>
  schema.annotations({
    description: `must ${rule}`,
    message: () => ({ message: `must ${rule}`, override: true })
  })

/** `a, b or c` */
export const alternatives = (words: ReadonlyArray<string>): string =>
  words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`
