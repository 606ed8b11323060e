import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"

/** Brings `dist/` up to date once, before any suite starts a daemon from it. esbuild says itself what is wrong. */
export const setup = () => {
  const script = fileURLToPath(new URL("../../scripts/build.mjs", import.meta.url))
  spawnSync(process.execPath, [script, "--quiet"], { stdio: "inherit" })
}
