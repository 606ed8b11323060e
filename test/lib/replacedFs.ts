import fs from "node:fs"
import { syncBuiltinESMExports } from "node:module"
import { Effect } from "effect"

type Functions = Partial<typeof fs>

const set = (functions: Functions) =>
  Effect.sync(() => {
    Object.assign(fs, functions)
    syncBuiltinESMExports()
  })

/** Has every module of this process call these functions in place of those of node:fs, until the scope ends. */
export const replaceFs = (functions: Functions) =>
  Effect.suspend(() => {
    const names = Object.keys(functions) as ReadonlyArray<keyof typeof fs>
    const former: Functions = Object.fromEntries(names.map((name) => [name, fs[name]]))
    return Effect.acquireRelease(set(functions), () => set(former))
  })
