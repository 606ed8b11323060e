import { spawnSync } from "node:child_process"
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterEach, beforeEach, describe, expect, it } from "vitest"

const root = fileURLToPath(new URL("..", import.meta.url))

interface Lock {
  readonly packages: Record<string, Record<string, unknown>>
}

describe("package-lock.json", () => {
  let folder: string

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "tilld-lock-"))
    for (const file of ["package.json", "package-lock.json", "scripts/lockfile.mjs"]) {
      cpSync(join(root, file), join(folder, file))
    }
  })

  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  const lockfile = (...args: ReadonlyArray<string>) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(folder, "scripts/lockfile.mjs"), ...args], {
      encoding: "utf8"
    })
    return { status, output: stdout + stderr }
  }

  const read = (): Lock => JSON.parse(readFileSync(join(folder, "package-lock.json"), "utf8"))

  const plant = (change: (packages: Lock["packages"]) => void): void => {
    const lock = read()
    change(lock.packages)
    writeFileSync(join(folder, "package-lock.json"), `${JSON.stringify(lock, null, 2)}\n`)
  }

  it("names every optional platform package, and allowScripts every install script", () => {
    expect(lockfile("--check")).toEqual({ status: 0, output: "" })
  })

  it("is refused without the package of another platform, and is completed again, but for its hash", () => {
    const place = "node_modules/@esbuild/darwin-arm64"
    const hash = "npm view @esbuild/darwin-arm64@0.28.2 dist.integrity"
    plant((packages) => delete packages[place])

    expect(lockfile("--check")).toMatchObject({ status: 1, output: expect.stringMatching(`${place} .* is missing`) })
    expect(lockfile()).toMatchObject({ status: 1, output: expect.stringContaining(hash) })
    expect(lockfile("--check")).toMatchObject({ status: 1, output: expect.not.stringContaining("is missing") })
    expect(read().packages[place]).toMatchObject({ cpu: ["arm64"], dev: true, optional: true, os: ["darwin"] })
  })

  it("is refused without the os and cpu of a package", () => {
    const place = "node_modules/@esbuild/win32-x64"
    plant((packages) => {
      delete packages[place]?.["os"]
      delete packages[place]?.["cpu"]
    })

    const { status, output } = lockfile("--check")
    expect(status).toBe(1)
    expect(output).toContain(`${place} lacks os ["win32"]`)
    expect(output).toContain(`${place} lacks cpu ["x64"]`)
  })

  it("is refused with the host of a registry", () => {
    plant((packages) => {
      packages["node_modules/effect"] = {
        ...packages["node_modules/effect"],
        resolved: "https://mirror.test/effect.tgz"
      }
    })

    expect(lockfile("--check")).toMatchObject({ status: 1, output: expect.stringContaining("https://mirror.test") })
  })

  it.each([undefined, "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=", "sha512-"])(
    "is refused when a package has no hash to hold it against: %s",
    (integrity) => {
      plant((packages) => {
        const { integrity: _, ...entry } = packages["node_modules/viem"] ?? {}
        packages["node_modules/viem"] = integrity === undefined ? entry : { ...entry, integrity }
      })

      expect(lockfile("--check")).toMatchObject({
        status: 1,
        output: expect.stringContaining("node_modules/viem has no integrity hash")
      })
    }
  )

  it("is refused when the package of another platform has no hash", () => {
    plant((packages) => delete packages["node_modules/@esbuild/darwin-arm64"]?.["integrity"])

    expect(lockfile("--check")).toEqual({
      status: 1,
      output: expect.stringMatching(
        /^package-lock.json: node_modules\/@esbuild\/darwin-arm64 has no integrity hash: .*\n$/
      )
    })
  })

  it("is refused when a package runs an install script that allowScripts does not name", () => {
    plant((packages) => {
      packages["node_modules/viem"] = { ...packages["node_modules/viem"], hasInstallScript: true }
    })

    expect(lockfile("--check")).toMatchObject({ status: 1, output: expect.stringContaining("allowScripts lacks viem") })
  })
})
