import { cpus, loadavg } from "node:os"
import { parseArgs } from "node:util"
import { NodeContext, NodeHttpClient, NodeRuntime } from "@effect/platform-node"
import { Data, Effect, Layer } from "effect"
import { answers } from "./answers.ts"
import { collect } from "./collect.ts"
import { cost } from "./cost.ts"
import { create } from "./create.ts"
import { detecting } from "./detecting.ts"
import { type Figure, holds, print, times } from "./Figure.ts"
import { floods } from "./floods.ts"
import { hanging } from "./hanging.ts"
import { heavy } from "./heavy.ts"
import * as Matching from "./matching.ts"
import { paint } from "./paint.ts"
import { pending } from "./pending.ts"
import { createOnPostgres, readsOnPostgres } from "./postgres.ts"
import { reads } from "./reads.ts"
import { scale } from "./scale.ts"
import { start } from "./start.ts"
import { steps } from "./steps.ts"
import { webhooks } from "./webhooks.ts"

// How fast and how large it is, each figure beside a reference that is measured in the same run, so that a busy machine
// changes both. `npm run bench -- create reads` runs these parts; `--rows=200000` makes the large table smaller,
// `--hours=24` takes a whole day of many payments for what watching costs; with `--tries=3` a part that does not keep to its
// floors is measured up to three times, and the best of each figure counts. With `--engine=postgres` creates and reads are
// measured beside those with a file.

/** A floor does not hold, or a part that was asked for does not exist. */
class BenchFailed extends Data.TaggedError("BenchFailed")<{ readonly message: string }> {}

const matching = Effect.sync((): ReadonlyArray<Figure> => {
  const { matchMs, parseMs, ratio } = Matching.run()
  return [
    {
      what: "match 5,000 logs, 100,000 addresses",
      measured: `${matchMs.toFixed(2)} ms`,
      beside: `${parseMs.toFixed(2)} ms of JSON.parse`,
      judged: ratio,
      floor: { atMost: 2 },
      goal: { atMost: 1.3 },
      written: times
    }
  ]
})

const partsOf = (rows: number, hours: number) => ({
  start,
  create,
  reads: reads(rows),
  detecting,
  webhooks,
  hanging,
  paint,
  heavy,
  answers,
  pending: pending(rows),
  matching,
  scale: scale(rows),
  floods,
  cost: cost(hours),
  collect,
  units: steps
})

const partsOnPostgres = { create: createOnPostgres, reads: readsOnPostgres }

/** Of two measurements of a part, each figure that keeps to its floor. */
const better = (former: ReadonlyArray<Figure>, latter: ReadonlyArray<Figure>): ReadonlyArray<Figure> =>
  former.map((figure, i) => (holds(figure) ? figure : (latter[i] ?? figure)))

const main = Effect.gen(function* () {
  const text = { type: "string" } as const
  const options = { rows: text, hours: text, tries: text, engine: { ...text, default: "sqlite" } }
  const { positionals: wanted, values } = parseArgs({ options, allowPositionals: true })
  const tries = Number(values.tries ?? 1)
  const ofFile = partsOf(Number(values.rows ?? 1_000_000), Number(values.hours ?? 1))
  const parts = Object.entries(values.engine === "postgres" ? partsOnPostgres : ofFile)
  const unknown = wanted.filter((name) => parts.every(([part]) => part !== name))
  if (unknown.length > 0) {
    const known = parts.map(([name]) => name).join(", ")
    return yield* new BenchFailed({ message: `There is no ${unknown.join(", ")}: choose from ${known}` })
  }

  console.log(`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model}, load ${loadavg()[0]?.toFixed(1)}`)
  const broken: Array<string> = []
  for (const [name, part] of parts) {
    if (wanted.length > 0 && !wanted.includes(name)) continue
    console.log(`\n${name}`)
    let figures: ReadonlyArray<Figure> = yield* part
    // A busy machine has bad moments of its own.
    for (let tried = 1; tried < tries && !figures.every(holds); tried++) figures = better(figures, yield* part)
    for (const figure of figures) {
      print(figure)
      if (!holds(figure)) broken.push(figure.what)
    }
  }
  if (broken.length > 0) return yield* new BenchFailed({ message: `\nA floor does not hold: ${broken.join("; ")}` })
})

const complain = ({ message }: { readonly message: string }) =>
  Effect.sync(() => {
    console.error(message)
    process.exitCode = 1
  })

NodeRuntime.runMain(
  main.pipe(Effect.catchAll(complain), Effect.provide(Layer.merge(NodeContext.layer, NodeHttpClient.layer)))
)
