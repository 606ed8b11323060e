import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { localChain, makeHome } from "../lib/daemon.ts"
import { startTilld, tilld } from "../lib/tilld.ts"
import {
  arch,
  bare,
  type Checkout,
  checkout,
  clear,
  deb,
  major,
  must,
  next,
  otherRoot,
  out,
  ran,
  version,
  workshop
} from "./making.ts"
import { expectPages, shopOf } from "./shop.ts"
import { underSystemd } from "./systemd.ts"

const again = join(workshop, "again")
const name = (of: string) => `tilld-${of}-linux-${arch}`

let source: Checkout
let other: Checkout

/** A daemon of some copy of the program on a chain of its own, and an API key made by its command. */
const serving = (binary: string) =>
  Effect.gen(function* () {
    const chain = yield* localChain("base")
    const home = yield* makeHome({ chains: new Map([["base", chain]]) })
    const options = { binary, cwd: home.folder, env: bare }
    const checked = yield* tilld(["config", "check", "--config", home.config], options)
    expect(checked.code, checked.stderr).toBe(0)
    const daemon = yield* startTilld(["serve", "--config", home.config], options)
    const { annotations } = JSON.parse(yield* daemon.line('"listening"'))
    const url = `http://127.0.0.1:${annotations.port}`
    const made = yield* tilld(
      ["keys", "create", "--mode", "test", "--name", "shop", "--config", home.config, "--json"],
      options
    )
    expect(made.code, made.stderr).toBe(0)
    return { ...shopOf(url, JSON.parse(made.stdout).key, chain), daemon, url }
  })

beforeAll(async () => {
  source = await checkout("source")
})
afterAll(clear)

it("no release is made of a work tree that differs from its commit, nor without the kept schema", async () => {
  source.write("README.md", (text) => `${text}\n`)
  expect((await source.release(out)).output).toMatch(/work tree differs.*\n ?M README\.md/)
  source.write("README.md", (text) => text.slice(0, -1))
  expect((await source.release(out)).output).toMatch(`commit test/vectors/schemas/${version}.sql`)
  await source.commit("keep the schema")
})

it("a release is made once, and another checkout of the commit gives the same bytes", async () => {
  const made = await source.release(out)
  expect(made.status, made.output).toBe(0)
  expect(readdirSync(out).sort()).toEqual(["SHA256SUMS", `${name(version)}.tar.gz`, deb(version)].sort())
  expect((await source.release(out)).output).toMatch(/is there already: remove it, or raise the version/)

  other = await checkout("elsewhere/other", source.folder)
  const umask = process.umask(0o077)
  const repeated = await other.release(again)
  process.umask(umask)
  expect(repeated.status, repeated.output).toBe(0)
  expect(readFileSync(join(again, "SHA256SUMS"), "utf8")).toBe(readFileSync(join(out, "SHA256SUMS"), "utf8"))
  await must("sha256sum", ["--check", "--strict", "SHA256SUMS"], { cwd: out })
})

it("a released version is not made again from another commit, nor with another schema", async () => {
  await must("git", ["tag", `v${version}`], { cwd: other.folder })
  await other.commit("later")
  expect((await other.release(join(workshop, "never"))).output).toMatch(/is released already \(tag v/)
  await must("git", ["tag", "-d", `v${version}`], { cwd: other.folder })
  other.write("src/migrations/0001_start/accounts.ts", (text) => text.replace("name TEXT NOT NULL,", "name TEXT,"))
  await other.commit("another schema")
  expect((await other.release(join(workshop, "never"))).output).toMatch(/has another schema than .* add a migration/)
  await must("git", ["reset", "-q", "--hard", "HEAD~2"], { cwd: other.folder })
})

it("an archive holds what runs, its licences, its bill of materials and its sums, of one owner", async () => {
  await must("tar", ["-xzf", join(out, `${name(version)}.tar.gz`), "-C", workshop])
  const folder = join(workshop, name(version))
  await must("sha256sum", ["--check", "--strict", "--quiet", "SHA256SUMS"], { cwd: folder })
  expect(await must("tar", ["-tvzf", join(out, `${name(version)}.tar.gz`), "--numeric-owner"])).not.toMatch(
    /^\S+ (?!0\/0)/m
  )
  expect(readdirSync(join(folder, "node_modules")).sort()).toEqual([
    "better-sqlite3",
    "bindings",
    "file-uri-to-path",
    "node-gyp-build",
    "secp256k1"
  ])
  const { components, metadata } = JSON.parse(readFileSync(join(folder, "sbom.cdx.json"), "utf8"))
  expect(metadata.component).toMatchObject({ name: "tilld", version })
  const licences = readFileSync(join(folder, "THIRD-PARTY-LICENSES.txt"), "utf8")
  for (const component of components) expect(licences).toContain(`\n${component.name} ${component.version} (`)
  for (const bundled of ["effect", "viem", "preact", "better-sqlite3", "selfsigned"]) {
    expect(components.map((component: { name: string }) => component.name)).toContain(bundled)
  }
  expect(components.map((component: { name: string }) => component.name)).not.toContain("vitest")
})

it.live("installed from the archive in an empty folder, it checks, serves, makes keys and takes a payment", () =>
  Effect.gen(function* () {
    const binary = join(workshop, name(version), "dist/tilld.js")
    const { create, daemon, settle } = yield* serving(binary)
    yield* settle(yield* create("first"))
    expect((yield* daemon.end("SIGTERM")).code).toBe(0)
  }).pipe(Effect.scoped)
)

it.live("a running daemon answers with all its pages after a rebuild in place", () =>
  Effect.gen(function* () {
    const before = readFileSync(join(source.folder, "dist/tilld.js"), "utf8")
    const { create, url } = yield* serving(join(source.folder, "dist/tilld.js"))
    const { checkoutUrl } = yield* create("before the rebuild")
    source.write("src/Domain/Chain.ts", (text) => `${text}\nexport const rebuilt = "rebuilt"\n`)
    source.write("src/Http/HttpReply.ts", (text) => `${text}\n`)
    source.write("src/Portal/style.css", (text) => `${text}\n.rebuilt { color: red }\n`)
    source.write("src/Documents/texts.ts", (text) => `${text}\nglobalThis.process.title = "rebuilt"\n`)
    yield* Effect.promise(source.build)
    expect(readFileSync(join(source.folder, "dist/tilld.js"), "utf8")).not.toBe(before)
    yield* expectPages(url, checkoutUrl)
    yield* Effect.promise(() => must("git", ["checkout", "-q", "."], { cwd: source.folder }))
  }).pipe(Effect.scoped)
)

it("the next version is made beside it", async () => {
  other.write("package.json", (text) => text.replace(`"version": "${version}"`, `"version": "${next}"`))
  other.write("package-lock.json", (text) =>
    text.replaceAll(`"version": "${version}",\n  "lock`, `"version": "${next}",\n  "lock`)
  )
  await other.commit("the next version")
  await other.release(out)
  await other.commit("keep its schema")
  const made = await other.release(out)
  expect(made.status, made.output).toBe(0)
  expect(readFileSync(join(out, "SHA256SUMS"), "utf8").split("\n")).toHaveLength(5)
})

const inRoot = process.getuid?.() === 0 ? otherRoot : async () => undefined

it("install.sh installs versions side by side, goes back, and says what it cannot do", async ({ skip }) => {
  const sh = await inRoot(out)
  if (sh === undefined) return skip("no root, or no overlay file system")
  const unpack = `mkdir -p /unpacked && cd /unpacked && for f in /given/*.tar.gz; do tar -xzf $f; done`
  const install = (of: string) => `sh /unpacked/${name(of)}/install.sh`
  const state =
    "readlink /opt/tilld/current; tilld --version | head -1; stat -c '%a %U:%G' /etc/tilld /etc/tilld/tilld.toml"

  const first = await sh(
    `${unpack} && umask 077 && ${install(version)} && cd / && rm -r /unpacked && setpriv --reuid=tilld --clear-groups --regid=tilld tilld --version && ${state} && id tilld && ls /etc/tilld`
  )
  expect(first.output).toMatch(`tilld ${version} is installed in /opt/tilld/${version}.\nIt needs a master key: `)
  expect(first.output).toMatch(`${version}\n${version}\n750 root:tilld\n640 root:tilld\n`)
  expect(first.output).toMatch(/\ntilld\.toml\n$/)

  const second = await sh(
    `echo '# mine' >> /etc/tilld/tilld.toml; ${unpack} && ${install(next)} && ${state}; tail -1 /etc/tilld/tilld.toml`
  )
  expect(second.output).toMatch(`${next}\n${next}\n750 root:tilld\n640 root:tilld\n# mine`)
  expect((await sh(`/opt/tilld/${version}/install.sh && ${state}`)).output).toMatch(`${version}\n${version}\n`)

  for (const [script, words] of [
    [
      `echo x >> /unpacked/${name(next)}/dist/client.js; ${install(next)}`,
      /files in .* are damaged: unpack the archive again/
    ],
    [`PATH=/nowhere; /bin/sh /unpacked/${name(version)}/install.sh`, /not found|there is no node in PATH/],
    [`setpriv --reuid=65534 ${install(version)}`, /run it as root/],
    [
      `ln -s /bin/false /usr/local/bin/node; PATH=/usr/local/bin:$PATH ${install(version)}`,
      /this package is for Node .* on Linux/
    ],
    [`mount -t tmpfs -o ro tmpfs /opt; ${install(version)}`, /\/opt\/tilld cannot be written/],
    [`echo x > /opt/tilld/${version}/SHA256SUMS; ${install(version)}`, /holds another build of/]
  ] as const) {
    const { output, status } = await sh(`${unpack}; ${script}`)
    expect(status, script).not.toBe(0)
    expect(output, script).toMatch(words)
  }
  const mixed = await sh(`dpkg -i /given/${deb(next)}`)
  expect(mixed.status).not.toBe(0)
  expect(mixed.output).toMatch(
    /tilld: install\.sh has installed tilld, .*: install the archive of this version instead/
  )
  expect((await sh("rm -rf /opt/tilld /usr/bin/tilld /usr/local/bin/node /etc/tilld /unpacked")).status).toBe(0)
})

it("the Debian package installs, upgrades, goes back and leaves", async ({ skip }) => {
  const sh = await inRoot(out)
  if (sh === undefined) return skip("no root, or no overlay file system")
  expect(await must("dpkg-deb", ["--field", join(out, deb(version)), "Depends"])).toMatch(
    new RegExp(
      `^nodejs \\(>= 20\\.19\\), nodejs \\(<< ${Number(major) + 1}\\), libc6 \\(>= 2\\.\\d+\\), libstdc\\+\\+6 \\(>= \\d+\\), passwd`
    )
  )
  const installed = await sh(
    `rm -rf /etc/tilld; dpkg -i /given/${deb(version)} && tilld --version | head -1 && ls /etc/tilld /opt/tilld && stat -c '%a %U:%G' /etc/tilld/tilld.toml`
  )
  expect(installed.status, installed.output).toBe(0)
  expect(installed.output).toMatch(
    `\n${version}\n/etc/tilld:\ntilld.toml\n\n/opt/tilld:\n${version}\ncurrent\npackaged\n640 root:tilld`
  )
  expect((await sh("dpkg --verify tilld")).output).toBe("")

  const upgraded = await sh(
    `echo '# mine' >> /etc/tilld/tilld.toml; dpkg -i /given/${deb(next)} && tilld --version | head -1 && ls /opt/tilld && tail -1 /etc/tilld/tilld.toml`
  )
  expect(upgraded.output).toMatch(`${next}\n${version}\n${next}\ncurrent\npackaged\n# mine`)
  // The folder of the former version is whole, for the daemon that still runs from it.
  expect(
    (await sh(`cd /opt/tilld/${version} && sha256sum --check --strict --quiet SHA256SUMS && echo whole`)).output
  ).toBe("whole\n")
  expect((await sh(`dpkg -i /given/${deb(version)} && tilld --version | head -1`)).output).toMatch(
    new RegExp(`\\n${version}\\n$`)
  )

  const removed = await sh(
    `touch /etc/tilld/master-key; dpkg -r tilld && ls /opt /etc/tilld; ls /usr/bin/tilld /lib/systemd/system/tilld.service`
  )
  expect(removed.output).toMatch(/\nmaster-key\ntilld\.toml\n/)
  expect(removed.output).not.toMatch(/^tilld$/m)
  expect(removed.output.match(/No such file or directory/g)).toHaveLength(2)
  expect((await sh("dpkg -P tilld && ls /etc/tilld")).output).toMatch(/master-key\n$/)
})

underSystemd()

it("a release for a machine without a compiler here is refused, and nothing is left", async () => {
  const absent = arch === "x64" ? "arm64" : "x64"
  // What a release needs, and no compiler, which this machine may have.
  const bin = join(workshop, "without-compiler")
  mkdirSync(bin)
  for (const needed of ["git", "npm", "sh"]) {
    symlinkSync((await must("sh", ["-c", `command -v ${needed}`])).trim(), join(bin, needed))
  }
  const { output, status } = await ran(
    process.execPath,
    ["scripts/release.mjs", "--arch", absent, "--node", major, "--out", join(workshop, "absent")],
    { cwd: other.folder, env: { ...process.env, PATH: `${bare.PATH}:${bin}` } }
  )
  expect(status, output).toBe(1)
  expect(output).toMatch(new RegExp(`There is no compiler for ${absent} here .*: no files for ${absent} were made`))
  expect(readdirSync(join(workshop, "absent")).filter((file) => file.startsWith("tilld"))).toEqual([])
  expect(existsSync(join(out, "SHA256SUMS")) && statSync(out).isDirectory()).toBe(true)
})
