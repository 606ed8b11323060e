import { cpus } from "node:os"
import { NodeContext, NodeRuntime } from "@effect/platform-node"
import { Effect } from "effect"
import { create } from "./create.ts"
import { holds, print } from "./Figure.ts"

const parts = { create }

const main = Effect.gen(function* () {
  const wanted = process.argv.slice(2)
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

NodeRuntime.runMain(main.pipe(Effect.provide(NodeContext.layer)))
