import { Effect } from "effect"
import type { Home } from "../lib/daemon.ts"
import { tilldProcess } from "../lib/processes.ts"

/** Backs the database up beside the running daemon; the command checks the copy. Returns what went wrong. */
export const backUp = (home: Home, file: string) =>
  Effect.map(tilldProcess(["backup", file, "--force", "--config", home.config]), ({ code, stderr }) =>
    code === 0 ? [] : [`a backup ended with ${code}: ${stderr}`]
  )
