// Preloaded into a process: kills it before the KILL_AT-th call that gives a file its name, or removes one; with KILL_ON, before
// that call of another function of node:fs. A write to an open file is cut in half.
import fs from "node:fs"
import { syncBuiltinESMExports } from "node:module"

let left = Number(process.env.KILL_AT)
for (const name of process.env.KILL_ON?.split(",") ?? ["linkSync", "renameSync", "rmSync"]) {
  const call = fs[name]
  fs[name] = (...args) => {
    // A copy beside the database is removed in four calls, and is of no use.
    const isScratch = name === "rmSync" && String(args[0]).includes(".restoring")
    if (!isScratch && --left <= 0) {
      const [file, text] = args
      if (name === "writeFileSync" && typeof file === "number") fs.writeSync(file, text.slice(0, text.length / 2))
      process.kill(process.pid, "SIGKILL")
    }
    return call(...args)
  }
}
syncBuiltinESMExports()
