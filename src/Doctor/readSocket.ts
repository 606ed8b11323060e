import { statSync } from "node:fs"
import { dirname } from "node:path"
import { Effect, Either } from "effect"
import type { SettingsShape } from "../Settings.ts"
import { type Finding, ok, warn } from "./Finding.ts"

const setgid = 0o2000
const remedy = "install -d -m 2750 -o tilld -g tilld-read the folder, or use systemd/tilld.tmpfiles.conf"

/** Checks that the folder of the read-only socket gives it a group of its own. No finding where none is configured. */
export const examineReadSocket = ({ control: { readSocket } }: SettingsShape) =>
  Effect.sync((): ReadonlyArray<Finding> => {
    if (readSocket === "") return []
    const name = "read socket"
    const folder = dirname(readSocket)
    const found = Either.try(() => statSync(folder))
    if (Either.isLeft(found)) return [warn(name, `${folder} cannot be entered: no one can use ${readSocket}`, remedy)]
    const { mode } = found.right
    return (mode & setgid) === 0
      ? [warn(name, `${folder} is not setgid: ${readSocket} gets the daemon's own group`, remedy)]
      : [ok(name, `${readSocket} is for the group of ${folder}, whose members may run commands that only read`)]
  })
