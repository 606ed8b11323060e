import { cpus } from "node:os"
import { NodeContext, NodeHttpClient, NodeRuntime } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { create } from "./create.ts"
import { detecting } from "./detecting.ts"
import { holds, print } from "./Figure.ts"
import { start } from "./start.ts"

const parts = { start, create, detecting }

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

NodeRuntime.runMain(main.pipe(Effect.provide(Layer.merge(NodeContext.layer, NodeHttpClient.layer))))
