// Preloaded into the daemon: notes once a minute what is left of its heap after a whole collection. The size of the process
// tells of no slow growth, since the heap is collected when it suits V8.
import { appendFileSync } from "node:fs"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { isMainThread } from "node:worker_threads"

const file = process.env.SOAK_HEAP
if (isMainThread && file !== undefined && process.argv.includes("serve")) {
  setFlagsFromString("--expose-gc")
  const collect = runInNewContext("gc")
  setInterval(() => {
    collect()
    const value = process.memoryUsage().heapUsed / 1024
    appendFileSync(file, `${JSON.stringify({ at: Date.now(), value, life: process.pid })}\n`)
  }, 60_000).unref()
}
