import { cpus } from "node:os"
import { NodeContext, NodeHttpClient, NodeRuntime } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { create } from "./create.ts"
import { detecting } from "./detecting.ts"
import { holds, print } from "./Figure.ts"
import { reads } from "./reads.ts"
import { start } from "./start.ts"
import { webhooks } from "./webhooks.ts"

/** Rows of the large table, unless `--rows=N` says otherwise. */
const manyRows = 1_000_000

const main = Effect.gen(function* () {
  const options = process.argv.slice(2)
  const wanted = options.filter((option) => !option.startsWith("--"))
  const rows = Number(options.find((option) => option.startsWith("--rows="))?.slice("--rows=".length) ?? manyRows)
  const parts = { start, create, reads: reads(rows), detecting, webhooks }
  console.log(`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model}`)
  let broken = 0
  for (const [name, part] of Object.entries(parts)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue
    console.log(`\n${name}`)
    for (const figure of yield* part) {
      print(figure)
      if (!holds(figure)) broken++
    }
  }
  return broken
})

NodeRuntime.runMain(main.pipe(Effect.provide(Layer.merge(NodeContext.layer, NodeHttpClient.layer))))
