// Makes a release of the commit that is checked out: archives and Debian packages for both machines in release/, with their
// sums. The same commit gives the same bytes. It needs Debian or Ubuntu, npm's registry, and a compiler for each machine.
//
//   npm run release -- [--arch x64] [--arch arm64] [--node 20] [--node 22] [--node 24] [--out FOLDER]
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { dirname, join, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { currentBuild } from "./builds.mjs"
import { debianPackage, sums, tarball } from "./release/archives.mjs"
import { bindingsOf, machines, noCompiler, nodes } from "./release/bindings.mjs"
import { fail, run } from "./release/run.mjs"
import { billOfMaterials, licences, modules, shippedPlaces } from "./release/shipped.mjs"

const root = fileURLToPath(new URL("..", import.meta.url))
const scripts = join(root, "scripts/release")
const { values } = parseArgs({
  options: {
    arch: { type: "string", multiple: true },
    node: { type: "string", multiple: true },
    out: { type: "string" }
  }
})
/** What an option names of all there is; all of it where it is not given. */
const chosen = (option, all) => {
  const other = values[option]?.find((name) => !all.includes(name))
  if (other !== undefined) fail(`--${option} ${other} is none of ${all.join(", ")}`)
  return all.filter((name) => values[option]?.includes(name) ?? true)
}
const wanted = chosen("arch", Object.keys(machines))
const majors = chosen(
  "node",
  nodes.map(({ major }) => String(major))
)
const wantedNodes = nodes.filter(({ major }) => majors.includes(String(major)))
const out = resolve(values.out ?? join(root, "release"))
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
const { version } = manifest
const git = (...args) => run("git", args, { cwd: root }).trim()

/** Ends the release where the checked out commit is not what can be released under this version. */
const check = () => {
  const changes = git("status", "--porcelain")
  if (changes !== "") fail(`the work tree differs from the commit: commit or remove these first\n${changes}`)
  const released = git("tag", "--list", `v${version}`)
  if (released !== "" && git("rev-parse", `v${version}^{commit}`) !== git("rev-parse", "HEAD")) {
    fail(`${version} is released already (tag v${version} is another commit): raise the version in package.json`)
  }
  const made = wanted.map((arch) => join(out, `tilld-${version}-linux-${arch}.tar.gz`)).find((file) => existsSync(file))
  if (made !== undefined) fail(`${made} is there already: remove it, or raise the version in package.json`)
  // Writes it where there is none, and says then that it is to be committed.
  const typescript = ["--import", "./scripts/typescript.mjs", "test/release/keepSchema.ts", version]
  process.stderr.write(run(process.execPath, typescript, { cwd: root }))
  if (git("status", "--porcelain") !== "") {
    fail(`commit test/vectors/schemas/${version}.sql, by which later versions test their upgrade, and run this again`)
  }
}

/** What both machines get: all but the bindings. */
const stage = (folder, time) => {
  const put = (path, text) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  const copy = (path, target = path) => cpSync(join(root, path), join(folder, target), { recursive: true })

  copy("scripts/release/tilld", "bin/tilld")
  const build = `dist/builds/${currentBuild(join(root, "dist"))}`
  for (const file of ["tilld.js", "client.js", "client.d.ts", "checkout.js", "checkout.d.ts"]) copy(`dist/${file}`)
  copy(build)
  const files = git(
    "ls-files",
    "systemd",
    "config",
    "CHANGELOG.md",
    "LICENSE",
    "README.md",
    "SECURITY.md",
    "docs"
  ).split("\n")
  const isForDevelopment = /^config\/(tools\/|sandbox\.toml$)/
  for (const file of files) if (!isForDevelopment.test(file)) copy(file)
  for (const [name, parts] of Object.entries(modules)) {
    for (const part of ["package.json", ...parts]) copy(`node_modules/${name}/${part}`)
  }

  const places = shippedPlaces(JSON.parse(readFileSync(join(root, build, "packages.json"), "utf8")))
  put("completion/tilld.bash", run(process.execPath, ["dist/tilld.js", "--completions", "bash"], { cwd: root }))
  put("THIRD-PARTY-LICENSES.txt", licences(root, places))
  put("sbom.cdx.json", billOfMaterials(root, places, { name: manifest.name, time }))
  const { bin, description, engines, exports, license, name, type } = manifest
  put(
    "package.json",
    `${JSON.stringify({ name, version, description, license, type, engines, bin, exports }, null, 2)}\n`
  )
}

const release = (arch, { common, time, work }) => {
  const name = `tilld-${version}-linux-${arch}`
  const folder = join(work, name)
  cpSync(common, folder, { recursive: true })
  const bindings = bindingsOf(arch, wantedNodes, root, join(root, "release/.bindings"))
  for (const { bytes, place } of bindings) {
    const file = join(folder, "node_modules", place)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, bytes)
  }
  const install = readFileSync(join(scripts, "install.sh"), "utf8")
  const lines = new Intl.ListFormat("en", { type: "disjunction" }).format(majors)
  writeFileSync(join(folder, "install.sh"), install.replace("@NODES@", lines).replace("@ARCH@", arch))
  writeFileSync(join(folder, "SHA256SUMS"), sums(folder))

  tarball(join(work, "made", `${name}.tar.gz`), work, name, time)
  debianPackage(join(work, "made", `tilld_${version}_${machines[arch].debian}.deb`), {
    arch,
    bindings: bindings.map(({ bytes }) => bytes),
    from: folder,
    maintainer: git("log", "-1", "--format=%an <%ae>"),
    manifest,
    nodes: wantedNodes,
    scripts,
    time,
    work: join(work, `deb-${arch}`)
  })
}

check()
run(process.execPath, ["scripts/build.mjs", "--quiet"], { cwd: root })
const time = Number(process.env.SOURCE_DATE_EPOCH ?? git("log", "-1", "--format=%ct"))
mkdirSync(out, { recursive: true })
const work = mkdtempSync(join(out, ".work-"))
process.on("exit", () => rmSync(work, { recursive: true, force: true }))
mkdirSync(join(work, "made"))
const common = join(work, "common")
stage(common, time)

const unmade = []
for (const arch of wanted) {
  const why = noCompiler(arch)
  if (why === undefined) release(arch, { common, time, work })
  else unmade.push(`${why}: no files for ${arch} were made.`)
}
for (const name of readdirSync(join(work, "made"))) {
  renameSync(join(work, "made", name), join(out, name))
  console.log(join(out, name))
}
const lines = sums(out)
  .split("\n")
  .filter((line) => line.slice(66).startsWith("tilld"))
writeFileSync(join(out, "SHA256SUMS"), `${lines.join("\n")}\n`)
if (unmade.length > 0) fail(unmade.join("\n"))
