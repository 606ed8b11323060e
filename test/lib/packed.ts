import { spawnSync } from "node:child_process"
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { temporaryFolder } from "./store.ts"
import { PATH, root } from "./tilld.ts"

const run = (command: string, args: ReadonlyArray<string>, cwd: string): string => {
  const { status, stderr, stdout } = spawnSync(command, args, {
    cwd,
    encoding: "utf8",
    env: { PATH, HOME: cwd },
    shell: process.platform === "win32"
  })
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${status}: ${stderr}`)
  return stdout
}

/** A program's folder that has tilld installed, as it is shipped, and nothing else: `node_modules/tilld`. */
export const folderWithTilld = Effect.map(temporaryFolder, (folder) => {
  const packed = run("npm", ["pack", root, "--ignore-scripts", "--json", "--pack-destination", folder], folder)
  const [{ filename }] = JSON.parse(packed) as [{ filename: string }]
  mkdirSync(join(folder, "node_modules/tilld"), { recursive: true })
  run("tar", ["-xzf", filename, "--strip-components=1", "-C", "node_modules/tilld"], folder)
  return folder
})
