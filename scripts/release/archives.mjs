// The archives of a release: the same folder gives the same bytes, whoever packs it, wherever and whenever.
import { createHash } from "node:crypto"
import {
  chmodSync,
  cpSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { machines, needed } from "./bindings.mjs"
import { fail, run } from "./run.mjs"

const executable = /(^|\/)(bin\/tilld|dist\/tilld\.js|install\.sh|DEBIAN\/(preinst|postinst|prerm|postrm))$/

/** All paths below a folder, relative to it, in order. */
const pathsIn = (folder) => readdirSync(folder, { recursive: true }).sort()

/** One owner's modes and one time for all files. */
const level = (folder, time) => {
  for (const path of ["", ...pathsIn(folder)]) {
    const file = join(folder, path)
    const stat = lstatSync(file)
    if (!stat.isSymbolicLink()) chmodSync(file, stat.isDirectory() || executable.test(path) ? 0o755 : 0o644)
    lutimesSync(file, time, time)
  }
}

/** Lines as `sha256sum` reads them, one for each file. */
export const sums = (folder, algorithm = "sha256") =>
  pathsIn(folder)
    .filter((path) => lstatSync(join(folder, path)).isFile())
    .map(
      (path) =>
        `${createHash(algorithm)
          .update(readFileSync(join(folder, path)))
          .digest("hex")}  ${path}\n`
    )
    .join("")

/** Packs the folder `name` in `parent`. */
export const tarball = (file, parent, name, time) => {
  level(join(parent, name), time)
  const reproducible = [
    "--sort=name",
    "--format=ustar",
    `--mtime=@${time}`,
    "--owner=0",
    "--group=0",
    "--numeric-owner"
  ]
  run("tar", [...reproducible, "--use-compress-program=gzip -n9", "-cf", file, "-C", parent, name])
}

/** A version in Debian's order: what comes before a release sorts before it. */
const debianVersion = (version) => version.replace("-", "~")

/** The GCC whose libstdc++ has these symbols: https://gcc.gnu.org/onlinedocs/libstdc++/manual/abi.html */
const libstdcpp = {
  "3.4.28": 9,
  "3.4.29": 11,
  "3.4.30": 12,
  "3.4.31": 13,
  "3.4.32": 13,
  "3.4.33": 14,
  "3.4.34": 15
}

const copyright = ({ license }) => `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: tilld
Comment: ${license}: see /opt/tilld/current/LICENSE. The packages that it holds parts of are in
 /opt/tilld/current/THIRD-PARTY-LICENSES.txt, each with its licence.
`

/**
 * Packs the unpacked release `from` as a Debian package, in the folder `work`. Its files lie in /opt/tilld/packaged, from
 * where the postinst links them to /opt/tilld/VERSION: dpkg removes the former version's while its daemon still runs.
 */
export const debianPackage = (file, { arch, bindings, from, maintainer, manifest, nodes, scripts, time, work }) => {
  const place = (path) => {
    const target = join(work, path)
    mkdirSync(join(target, ".."), { recursive: true })
    return target
  }
  cpSync(from, place("opt/tilld/packaged"), { recursive: true })
  symlinkSync("/opt/tilld/current/bin/tilld", place("usr/bin/tilld"))
  cpSync(join(from, "config/tilld.example.toml"), place("etc/tilld/tilld.toml"))
  for (const unit of readdirSync(join(from, "systemd"))) {
    const isUnit = /\.(service|timer)$/.test(unit)
    const target = isUnit ? `lib/systemd/system/${unit}` : `usr/share/doc/tilld/${unit}`
    cpSync(join(from, "systemd", unit), place(target))
  }
  cpSync(join(from, "completion/tilld.bash"), place("usr/share/bash-completion/completions/tilld"))
  writeFileSync(
    place("usr/share/man/man1/tilld.1.gz"),
    gzipSync(readFileSync(join(from, "docs/tilld.1")), { level: 9 })
  )
  writeFileSync(place("usr/share/doc/tilld/copyright"), copyright(manifest))

  const checksums = sums(work, "md5")
  const size = pathsIn(work).reduce((total, path) => total + lstatSync(join(work, path)).size, 0)
  const depends = [
    `nodejs (>= ${manifest.engines.node.replace(">=", "")})`,
    `nodejs (<< ${Math.max(...nodes.map(({ major }) => major)) + 1})`,
    `libc6 (>= ${needed(bindings, "GLIBC")})`,
    `libstdc++6 (>= ${libstdcpp[needed(bindings, "GLIBCXX")] ?? fail("a binding needs a newer libstdc++ than is known")})`,
    "passwd"
  ]
  writeFileSync(place("DEBIAN/md5sums"), checksums)
  writeFileSync(place("DEBIAN/conffiles"), "/etc/tilld/tilld.toml\n")
  writeFileSync(
    place("DEBIAN/control"),
    `Package: tilld
Version: ${debianVersion(manifest.version)}
Architecture: ${machines[arch].debian}
Maintainer: ${maintainer}
Installed-Size: ${Math.ceil(size / 1024)}
Depends: ${depends.join(", ")}
Section: net
Priority: optional
Description: ${manifest.description.split(":")[0]}
 One receiving address for each payment, on five EVM chains, with signed webhooks.
`
  )
  for (const script of ["preinst", "postinst", "prerm", "postrm"])
    cpSync(join(scripts, script), place(`DEBIAN/${script}`))
  level(work, time)
  chmodSync(join(work, "etc/tilld"), 0o750)
  chmodSync(join(work, "etc/tilld/tilld.toml"), 0o640)
  run("dpkg-deb", ["--root-owner-group", "-Zgzip", "--build", work, file], { env: { SOURCE_DATE_EPOCH: String(time) } })
}
