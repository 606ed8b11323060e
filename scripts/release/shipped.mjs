// What a release is made of besides tilld itself: the modules beside the bundle, and the licences and the bill of materials
// of all packages that are in either.
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fail, run } from "./run.mjs"

/**
 * The packages that stay outside of the bundle because of their native parts, with the files that run. Of secp256k1 not the
 * way without its native part: it is a hundred times slower, and a missing part is to be noticed.
 */
export const modules = {
  "better-sqlite3": ["lib"],
  bindings: ["bindings.js"],
  "file-uri-to-path": ["index.js"],
  secp256k1: ["index.js", "bindings.js", "lib/index.js", "lib/uint8array.js"],
  "node-gyp-build": ["index.js", "node-gyp-build.js"]
}

/** What is compiled into the native parts. */
const compiledIn = ["node_modules/secp256k1/node_modules/node-addon-api"]
const furtherLicences = { "node_modules/secp256k1": ["src/secp256k1/COPYING"] }
const sqlite = `SQLite, which is part of better-sqlite3's native part, is in the public domain: https://sqlite.org/copyright.html`

// The page /docs is this script, and its package brings no licence for it.
const scalar = `Scalar (@scalar/api-reference), which is part of @effect/platform, has the same licence, MIT: Copyright (c) 2023-present Scalar. https://github.com/scalar/scalar`

/** The places in package-lock.json of all packages of which a release holds a part. */
export const shippedPlaces = (bundled) =>
  [...new Set([...bundled, ...Object.keys(modules).map((name) => `node_modules/${name}`), ...compiledIn])].sort()

const isLicence = (name) => /^(licen[cs]e|copying|notice)/i.test(name)

/** The text of all licences. Ends the release where a package has none: it may not be passed on then. */
export const licences = (root, places) => {
  const read = (place) => {
    const folder = join(root, place)
    if (!existsSync(join(folder, "package.json")))
      fail(`${place} is not installed: remove node_modules, and run npm run setup`)
    const { license, name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
    const files = [...readdirSync(folder).filter(isLicence), ...(furtherLicences[place] ?? [])].sort()
    return {
      title: `${name} ${version} (${license})`,
      texts: files.map((file) => readFileSync(join(folder, file), "utf8"))
    }
  }
  const packages = places.map(read)
  const without = packages.filter(({ texts }) => texts.length === 0).map(({ title }) => title)
  if (without.length > 0)
    fail(`no licence text comes with ${without.join(", ")}: replace the package, or ask its author for one`)
  const line = "=".repeat(80)
  return `${[...packages.flatMap(({ texts, title }) => [`${line}\n${title}`, ...texts.map((text) => text.trim())]), line, sqlite, scalar].join("\n\n")}\n`
}

/** npm's CycloneDX document of what is locked, without what is not shipped, and with nothing of this machine. */
export const billOfMaterials = (root, places, { name, time }) => {
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"))
  const refs = new Set(
    places.map((place) => `${place.slice(place.lastIndexOf("node_modules/") + 13)}@${lock.packages[place].version}`)
  )
  const all = JSON.parse(run("npm", ["sbom", "--sbom-format", "cyclonedx", "--package-lock-only"], { cwd: root }))
  const components = all.components
    .filter((component) => refs.has(component["bom-ref"]))
    // Some are for development by package.json, and bundled for browsers.
    .map((component) => ({ ...component, scope: "required", properties: [] }))
  const missing = [...refs].filter((ref) => !components.some((component) => component["bom-ref"] === ref))
  if (missing.length > 0) fail(`npm sbom does not list ${missing.join(", ")}: see package-lock.json`)
  const own = all.metadata.component["bom-ref"]
  const { serialNumber: _, ...rest } = all
  const document = {
    ...rest,
    metadata: {
      timestamp: new Date(time * 1000).toISOString(),
      lifecycles: [{ phase: "build" }],
      component: { ...all.metadata.component, name, type: "application" }
    },
    components,
    dependencies: all.dependencies
      .filter(({ ref }) => ref === own || refs.has(ref))
      .map(({ dependsOn = [], ref }) => ({ ref, dependsOn: dependsOn.filter((other) => refs.has(other)) }))
  }
  return `${JSON.stringify(document, null, 2)}\n`
}
