/**
 * Where the Chromium for tests and pictures is: the one that CHROMIUM_PATH names, the system's, or else one that npm brings,
 * which needs no library of the system. Where npm has none for this machine, it is Playwright's, which is installed first.
 * `CHROMIUM_PATH=npm` passes over the system's.
 */
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { chromium } from "playwright-core"

export interface BrowserPlace {
  readonly executablePath: string
  /** Who brings it. */
  readonly from: "CHROMIUM_PATH" | "the system" | "npm" | "Playwright"
  /** What it needs in its environment. */
  readonly env: Readonly<Record<string, string>>
}

const root = fileURLToPath(new URL("../..", import.meta.url))
const { resolve } = createRequire(import.meta.url)

const system = ["/usr/bin/chromium", "/usr/bin/google-chrome"]

/** Unpacks 200 MB, once for all suites and runs. It comes with the libraries that it needs where it believes to be on Lambda. */
const unpack = (folder: string): void => {
  // Of one process each: several may find that there is none.
  const partial = `${folder}.${process.pid}`
  mkdirSync(partial, { recursive: true })
  const script = 'import browser from "@sparticuz/chromium"; await browser.executablePath()'
  const env = { ...process.env, TMPDIR: partial, AWS_EXECUTION_ENV: "AWS_Lambda_nodejs22.x" }
  const args = ["--input-type=module", "-e", script]
  const { status, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: "utf8", env })
  if (status !== 0) throw new Error(`@sparticuz/chromium could not be unpacked: ${stderr}`)
  // Its own names folders of Lambda.
  writeFileSync(
    join(partial, "fonts.conf"),
    `<fontconfig><dir>${folder}/fonts/fonts</dir><dir>/usr/share/fonts</dir><cachedir>${folder}/fonts-cache</cachedir></fontconfig>\n`
  )
  try {
    renameSync(partial, folder)
  } catch (error) {
    rmSync(partial, { recursive: true, force: true })
    if (!existsSync(folder)) throw error
  }
}

const ofNpm = (): BrowserPlace => {
  const [bin = ""] = resolve("@sparticuz/chromium").split("/build/")
  const { version }: { readonly version: string } = JSON.parse(readFileSync(join(bin, "package.json"), "utf8"))
  const folder = join(root, "node_modules/.cache", `chromium-${version}`)
  if (!existsSync(folder)) unpack(folder)
  return {
    executablePath: join(folder, "chromium"),
    from: "npm",
    env: { LD_LIBRARY_PATH: join(folder, "al2023/lib"), FONTCONFIG_FILE: join(folder, "fonts.conf") }
  }
}

/** Downloads it where it is missing. */
const ofPlaywright = (): BrowserPlace => {
  const executablePath = chromium.executablePath()
  if (!existsSync(executablePath)) {
    const cli = join(root, "node_modules/playwright-core/cli.js")
    spawnSync(process.execPath, [cli, "install", "chromium"], { stdio: ["ignore", "inherit", "inherit"] })
  }
  if (!existsSync(executablePath)) {
    throw new Error(
      "The pages are tested in Chromium, and there is none: apt-get install chromium, or npx playwright-core install chromium, or set CHROMIUM_PATH."
    )
  }
  return { executablePath, from: "Playwright", env: {} }
}

let found: BrowserPlace | undefined

const find = (): BrowserPlace => {
  const { CHROMIUM_PATH: named = "" } = process.env
  if (named !== "" && named !== "npm") return { executablePath: named, from: "CHROMIUM_PATH", env: {} }
  const executablePath = named === "npm" ? undefined : system.find((path) => existsSync(path))
  if (executablePath !== undefined) return { executablePath, from: "the system", env: {} }
  return process.platform === "linux" && process.arch === "x64" ? ofNpm() : ofPlaywright()
}

/** Unpacks or installs it where that is necessary. Throws where there is none, and says what to do. */
export const browserPlace = (): BrowserPlace => (found ??= find())

/** Options of Playwright's `launch`. */
export const launchOptions = () => {
  const { env, executablePath } = browserPlace()
  return {
    executablePath,
    args: ["--no-sandbox", "--disable-dev-shm-usage"],
    env: { ...process.env, ...env }
  }
}
