// Bundles src/cli.ts into a folder of dist/builds, which dist/tilld.js starts. What is imported dynamically becomes a file
// of its own, read when it is needed. Beside it, for other people's programs: dist/client.js and dist/checkout.js with their declarations, which need nothing else.
// With --quiet: no type check, no result, and nothing done when the inputs are those of the last build.
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { gzipSync } from "node:zlib"
import { currentBuild, placeBuild } from "./builds.mjs"
import { bringClientTypes } from "./clientTypes.mjs"
import { guideFiles } from "./guideFiles.mjs"
import "./typescript.mjs"

const root = fileURLToPath(new URL("..", import.meta.url))
const require = createRequire(import.meta.url)
const quiet = process.argv.includes("--quiet")
const dist = join(root, "dist")

/** A hash over everything that decides what the bundle holds. */
const inputs = () => {
  const hash = createHash("sha256")
  const add = (path) =>
    hash
      .update(`${path}\0`)
      .update(readFileSync(join(root, path)))
      .update("\0")
  for (const folder of ["src", "data"]) {
    if (!existsSync(join(root, folder))) continue
    const files = readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath ?? entry.path, entry.name).slice(root.length))
    for (const file of files.sort()) add(file)
  }
  for (const file of [
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "scripts/build.mjs",
    "scripts/builds.mjs",
    "scripts/declarations.mjs",
    "scripts/documentation.mjs"
  ])
    add(file)
  for (const file of guideFiles(root)) add(file)
  return hash.digest("hex").slice(0, 16)
}

await bringClientTypes(root)
const name = inputs()
if (quiet && currentBuild(dist) === name) process.exit(0)
console.error(quiet ? "Building tilld." : "Checking the types, and building tilld.")

if (!quiet) {
  const { status } = spawnSync(process.execPath, [require.resolve("typescript/bin/tsc"), "--noEmit"], {
    cwd: root,
    stdio: "inherit"
  })
  if (status !== 0) process.exit(1)
}

const { build } = await import("esbuild")
const { declarations } = await import("./declarations.mjs")
const { guide, reference } = await import("./documentation.mjs")
const { makeDocument } = await import("../src/Documents.ts")

/** Where viem has what its index exports, by name: the file, and the name in it. */
const placesIn = (index) => {
  const exported = readFileSync(index, "utf8")
    .replace(/\/\*[\s\S]*?\*\//g, "")
    .matchAll(/export \{([^}]*)\} from '([^']+)'/g)
  return new Map(
    Array.from(exported).flatMap(([, names, from]) =>
      names.split(",").map((text) => {
        const [name, local = name] = text.trim().split(" as ")
        return [local, [from.startsWith(".") ? join(dirname(index), from) : from, name]]
      })
    )
  )
}
const viem = join(root, "node_modules/viem/_esm")
const indexes = new Map([
  ["viem", placesIn(join(viem, "index.js"))],
  ["viem/accounts", placesIn(join(viem, "accounts/index.js"))]
])

/**
 * `import { Effect } from "effect"` gives a module as an object, and a bundler keeps all of what it holds. Imported from
 * the module's own path, only what is used stays. Through viem's index, each start would read what any command uses of
 * viem. One that is not rewritten works all the same.
 */
const modules = {
  name: "modules",
  setup({ onLoad }) {
    const index =
      /^import \{([^}]*)\} from "(viem(?:\/accounts)?|effect|@effect\/(?:cli|experimental|platform|platform-node|sql))"$/gm
    const one = (from) => (name) => {
      const [imported, local = imported] = name.split(" as ")
      const [file, own] = indexes.get(from)?.get(imported) ?? []
      if (file !== undefined) return `import { ${own} as ${local} } from ${JSON.stringify(file)}`
      const isModule = /^[A-Z]/.test(imported)
      return isModule ? `import * as ${local} from "${from}/${imported}"` : `import { ${name} } from "${from}/Function"`
    }
    const rewritten = (source, names, from) => {
      const values = names.split(",").map((name) => name.trim())
      const imports = values.filter((name) => name !== "" && !name.startsWith("type ")).map(one(from))
      // Lines stay where they are, for what errors say.
      return imports.join(";") + source.replace(/[^\n]/g, "")
    }
    onLoad({ filter: /[/\\]src[/\\].*\.tsx?$/ }, ({ path }) =>
      path.startsWith(join(root, "src"))
        ? {
            contents: readFileSync(path, "utf8").replace(index, rewritten),
            loader: path.endsWith("x") ? "tsx" : "ts"
          }
        : undefined
    )
  }
}

/** Leaves out what packages bring and tilld never runs. */
const trim = {
  name: "trim",
  setup({ onLoad, onResolve, resolve }) {
    // @effect/cli reads options from such files, and effect's schemas make test data: neither is asked for here.
    onResolve({ filter: /^(yaml|toml|ini|fast-check)$/ }, ({ path }) => ({ path, namespace: "nothing" }))
    // Each start would read another server, a cluster and metrics of its own.
    onResolve({ filter: /^\.\/lib\/(cluster|defaultMetrics|pushgateway|summary)$/ }, ({ importer, path }) =>
      /[/\\]prom-client[/\\]index\.js$/.test(importer) ? { path, namespace: "nothing" } : undefined
    )
    onLoad({ filter: /^/, namespace: "nothing" }, () => ({ contents: "module.exports = {}" }))
    // Its package.json says so, and a second one beside the modules hides it: nine languages nobody asks for.
    onResolve({ filter: /^@scure\/bip39\/wordlists\// }, async ({ path, ...from }) =>
      from.pluginData === trim
        ? undefined
        : { ...(await resolve(path, { ...from, pluginData: trim })), sideEffects: false }
    )
  }
}

const options = {
  absWorkingDir: root,
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node20.19",
  // These load a native binding from their own folder.
  external: ["better-sqlite3", "secp256k1"],
  // CommonJS packages in the bundle require Node's own modules.
  banner: {
    js: 'import { createRequire as $createRequire } from "node:module"; const require = $createRequire(import.meta.url);'
  },
  minifySyntax: true,
  sourcemap: "linked",
  sourcesContent: false,
  metafile: true,
  plugins: [modules, trim],
  legalComments: "none",
  logLevel: "warning"
}

const program = {
  ...options,
  entryPoints: ["src/cli.ts"],
  splitting: true,
  entryNames: "tilld",
  chunkNames: "chunks/[name]-[hash]"
}

// Each thread and child process starts from a file of its own, which the chunks look for beside them.
const threads = {
  ...options,
  entryPoints: ["src/Payments/addresses/deriver.ts", "src/Sql/checkpointer.ts", "src/Backup/copier.ts"],
  entryNames: "chunks/[name]"
}

// Runs wherever there is fetch: nothing of Node's, nothing from packages. It is read by people, so it is left as it is.
const client = {
  absWorkingDir: root,
  bundle: true,
  format: "esm",
  platform: "neutral",
  target: "es2022",
  entryPoints: [{ in: "src/client/index.ts", out: "client" }],
  metafile: true,
  legalComments: "none",
  logLevel: "warning"
}

// For a shop's own pages: the less of it, the better.
const checkout = {
  ...client,
  platform: "browser",
  entryPoints: [{ in: "src/client/checkout.ts", out: "checkout" }],
  minify: true
}

// What browsers get: each room's script and stylesheet, by the room's name and a hash. `Pages/assets.ts` serves them.
const assets = {
  absWorkingDir: root,
  bundle: true,
  format: "esm",
  platform: "browser",
  target: ["chrome109", "firefox115", "safari16"],
  entryPoints: [
    ...["Checkout", "Portal"].map((room) => ({ in: `src/${room}/islands/main.ts`, out: room.toLowerCase() })),
    { in: "src/client/modal.ts", out: "modal" },
    ...["Checkout", "Portal"].map((room) => ({ in: `src/${room}/style.css`, out: room.toLowerCase() })),
    { in: "src/Pages/documentation.css", out: "documents" }
  ],
  entryNames: "[name]-[hash]",
  minify: true,
  metafile: true,
  legalComments: "none",
  logLevel: "warning"
}

/** Scalar, which shows the API's reference, as HttpApiScalar of @effect/platform has it. */
const scalar = async () => {
  const file = join(root, "node_modules/@effect/platform/dist/esm/internal/httpApiScalar.js")
  const { javascript } = await import(pathToFileURL(file))
  // It tries whether it may use eval, does without, and the browser would report each time that the page's policy refused it.
  const [before, after, ...more] = javascript.split('return new Function(""),!0')
  if (after === undefined || more.length > 0) throw new Error(`scripts/build.mjs finds no test of eval in ${file}`)
  return gzipSync(`${before}return!1${after}`, { level: 9 })
}

/** The packages that the outputs hold parts of, by their places in package-lock.json. */
const packagesIn = (results) => {
  const inputs = results.flatMap(({ metafile }) =>
    Object.values(metafile.outputs).flatMap((output) =>
      Object.entries(output.inputs).flatMap(([path, { bytesInOutput }]) => (bytesInOutput > 0 ? [path] : []))
    )
  )
  const places = inputs.flatMap((path) => path.match(/^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/) ?? [])
  return [...new Set(places)].sort()
}

// Built beside, and then put in place: somebody may be running what is there, or building too.
const beside = `dist-${process.pid}`
const folder = join(beside, "program")
try {
  const results = [
    await build({ ...program, outdir: folder }),
    await build({ ...threads, outdir: folder }),
    await build({ ...client, outdir: beside }),
    await build({ ...checkout, outdir: beside }),
    await build({ ...assets, outdir: join(folder, "assets") })
  ]
  const place = join(root, folder, "assets")
  const style = `assets/${readdirSync(place).find((file) => file.startsWith("documents-"))}`
  const script = await scalar()
  const hash = createHash("sha256").update(script).digest("hex").slice(0, 16)
  // The page names operations, and nothing of the installation.
  const { paths } = makeDocument({ publicUrl: "", limits: { perMinute: 0, perHour: 0 } })
  writeFileSync(join(place, "scalar.js.gz"), script)
  writeFileSync(join(place, "docs.json"), JSON.stringify(reference(paths, style, hash)))
  writeFileSync(join(place, "guide.json"), JSON.stringify(guide(root, style)))
  writeFileSync(join(root, folder, "packages.json"), JSON.stringify(packagesIn(results)))
  writeFileSync(join(root, beside, "client.d.ts"), declarations(join(root, "src/client/index.ts")))
  writeFileSync(join(root, beside, "checkout.d.ts"), declarations(join(root, "src/client/checkout.ts")))
  placeBuild(join(root, beside), dist, name)
  if (!quiet) {
    const bytes = results.flatMap(({ metafile }) => Object.values(metafile.outputs).map((output) => output.bytes))
    const total = bytes.reduce((sum, each) => sum + each, 0)
    console.log(`dist/tilld.js and ${bytes.length} files of its build, ${(total / 2 ** 20).toFixed(1)} MiB`)
  }
} catch (error) {
  rmSync(join(root, beside), { recursive: true, force: true })
  // Of its own errors esbuild has said what is wrong.
  if (error.errors === undefined) console.error(error)
  process.exit(1)
}
