// Prints the lines of each room of the code beside its budget in config/tools/sizes.json, and the change since the last
// commit; exits with 1 where one is above it. `--lower` writes what is there now wherever it is less: a budget is only
// raised by hand, in a commit of its own whose body says what pays for it. Generated files do not count.
import { spawnSync } from "node:child_process"
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

process.chdir(fileURLToPath(new URL("..", import.meta.url)))
const budgetFile = "config/tools/sizes.json"
const generated = "src/client/types.ts"
/** Rooms of which each folder has a budget too. */
const divided = new Set(["Chains", "Payments", "Portal", "Webhooks"])
const small = 40

const isCounted = (path) => /\.tsx?$/.test(path)
const filesIn = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => `${entry.parentPath ?? entry.path}/${entry.name}`)
const linesOf = (path) => readFileSync(path, "utf8").split("\n").length - 1

/** What a file of `src` or `test` counts for: a folder and the file of its name beside it are one room. */
const placesOf = (path) => {
  const [top, ...rest] = path.replace(/\.tsx?$/, "").split("/")
  if (top !== "src") return [top]
  const [room, folder, file] = rest
  const isRoom = folder !== undefined || rooms.has(room)
  const inner = divided.has(room) && file !== undefined ? [`src/${room}/${folder}`] : []
  return [top, isRoom ? `src/${room}` : "src/*.ts", ...inner]
}
const rooms = new Set(
  readdirSync("src", { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []))
)

const sizes = new Map()
const changes = new Map()
const add = (map, key, n) => map.set(key, (map.get(key) ?? 0) + n)

const everyFile = ["src", "test"]
  .flatMap(filesIn)
  .filter((path) => path !== generated && !path.includes("/node_modules/"))
const counted = everyFile.filter(isCounted)
for (const path of counted) for (const place of placesOf(path)) add(sizes, place, linesOf(path))
const own = everyFile.filter((path) => path.startsWith("src/"))
sizes.set("files of src", own.length)
sizes.set(`files of src below ${small} lines`, own.filter((path) => isCounted(path) && linesOf(path) < small).length)
sizes.set("runtime dependencies", Object.keys(JSON.parse(readFileSync("package.json", "utf8")).dependencies).length)

const git = (...args) => spawnSync("git", args, { encoding: "utf8" }).stdout ?? ""
for (const line of git("diff", "--numstat", "--no-renames", "HEAD", "--", "src", "test").split("\n")) {
  const [added, removed, path = ""] = line.split("\t")
  if (isCounted(path)) for (const place of placesOf(path)) add(changes, place, Number(added) - Number(removed))
}
for (const path of git("ls-files", "--others", "--exclude-standard", "--", "src", "test").split("\n")) {
  if (isCounted(path)) for (const place of placesOf(path)) add(changes, place, linesOf(path))
}

const budgets = JSON.parse(readFileSync(budgetFile, "utf8"))
const names = [...new Set([...Object.keys(budgets), ...sizes.keys()])].sort()
const above = names.filter((name) => (sizes.get(name) ?? 0) > (budgets[name] ?? 0))
for (const name of names) {
  const [size, change] = [sizes.get(name) ?? 0, changes.get(name) ?? 0]
  const note = [change === 0 ? "" : `${change > 0 ? "+" : ""}${change}`, above.includes(name) ? "ABOVE ITS BUDGET" : ""]
  console.log(
    `${String(size).padStart(7)} of ${String(budgets[name] ?? 0).padStart(6)}  ${name}  ${note.join(" ")}`.trimEnd()
  )
}

if (process.argv.includes("--lower")) {
  const lowered = names.flatMap((name) => {
    const size = sizes.get(name) ?? 0
    return size === 0 ? [] : [[name, Math.min(size, budgets[name] ?? size)]]
  })
  writeFileSync(budgetFile, `${JSON.stringify(Object.fromEntries(lowered), null, 2)}\n`)
} else if (above.length > 0) {
  console.log(
    `Above its budget: ${above.join(", ")}. Take out as much as comes in; ${budgetFile} is raised by hand alone.`
  )
  process.exitCode = 1
}
