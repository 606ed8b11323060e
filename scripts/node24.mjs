// npm run test:node24: npm test on Node 24, which production has, in a clone of the last commit. npm brings that Node.
import { spawnSync } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import { fileURLToPath } from "node:url"

const version = "24.22.3"
const root = fileURLToPath(new URL("..", import.meta.url))
const name = `node-${process.platform === "win32" ? "win" : process.platform}-${process.arch}`
const place = join(root, "node_modules/.cache/node24")
const bin = join(place, "node_modules", name, "bin")

const run = (command, args, options = {}) => {
  const { error, status } = spawnSync(command, args, { stdio: "inherit", ...options })
  if (error !== undefined || status !== 0) {
    console.error(`${command} ${args.join(" ")} failed${error === undefined ? "" : `: ${error.message}`}`)
    process.exit(1)
  }
}

if (!existsSync(bin)) {
  mkdirSync(place, { recursive: true })
  run("npm", ["install", "--no-save", "--no-audit", "--no-fund", "--prefix", place, `${name}@${version}`])
}
const clone = mkdtempSync(join(tmpdir(), "tilld-node24-"))
process.on("exit", () => rmSync(clone, { recursive: true, force: true }))
// Some tests run as other users.
chmodSync(clone, 0o755)
run("git", ["clone", "--quiet", root, clone])
const env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}` }
delete env.npm_execpath
run("npm", ["test", ...process.argv.slice(2)], { cwd: clone, env })
