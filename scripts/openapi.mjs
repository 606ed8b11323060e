// Writes the OpenAPI document, as a daemon with the default configuration serves it: to dist/openapi.json, or to the
// file that is named. With --lint: into a temporary folder, for Redocly to look at.
import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import "./typescript.mjs"

const require = createRequire(import.meta.url)
const root = fileURLToPath(new URL("..", import.meta.url))

const write = async (file) => {
  const { makeOpenApi } = await import("../src/Documents.ts")
  const openApi = makeOpenApi({
    publicUrl: "http://127.0.0.1:8080",
    limits: { perMinute: 100, perHour: 1_000 }
  })
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, `${JSON.stringify(JSON.parse(openApi), null, 2)}\n`)
}

const lint = (file) => {
  const cli = require.resolve("@redocly/cli/bin/cli.js")
  const { status, stderr, stdout } = spawnSync(
    process.execPath,
    [cli, "lint", file, "--config", join(root, "config/tools/redocly.yaml")],
    // It would ask npm for its newest version, and tell its makers of each run.
    { encoding: "utf8", env: { ...process.env, REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" } }
  )
  if (status === 0) return
  console.log(`${stdout}${stderr}`)
  process.exitCode = 1
}

const [argument] = process.argv.slice(2)
if (argument === "--lint") {
  const folder = mkdtempSync(join(tmpdir(), "tilld-openapi-"))
  try {
    const file = join(folder, "openapi.json")
    await write(file)
    lint(file)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
} else {
  const file = argument ?? join(root, "dist/openapi.json")
  await write(file)
  console.log(file)
}
