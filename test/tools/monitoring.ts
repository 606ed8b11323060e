import { spawnSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Ajv } from "ajv"

// The files for Prometheus and Grafana, read by their own tools.

/** Grafana's own schema of dashboards: a file of grafana-foundation-sdk, which no package has. */
const schemaFile = "jsonschema/dashboard.jsonschema.json of github.com/grafana/grafana-foundation-sdk"

const say = (line: string): void => void process.stdout.write(`${line}\n`)

const run = (cwd: string, command: string, args: ReadonlyArray<string>): boolean => {
  const { error, status } = spawnSync(command, args, { cwd, stdio: ["ignore", "inherit", "inherit"] })
  if (error !== undefined) say(error.message)
  return status === 0
}

/** TILLD_PROMTOOL, the installed one, or that of Debian's package, which is unpacked into `folder` and not installed. */
const findPromtool = (folder: string): string => {
  const { TILLD_PROMTOOL } = process.env
  if (TILLD_PROMTOOL !== undefined) return TILLD_PROMTOOL
  if (spawnSync("promtool", ["--version"]).status === 0) return "promtool"
  run(folder, "apt-get", ["download", "-qq", "prometheus"])
  const [archive = "prometheus.deb"] = readdirSync(folder).filter((name) => name.endsWith(".deb"))
  run(folder, "dpkg", ["-x", archive, "."])
  return join(folder, "usr/bin/promtool")
}

/** Every query of the dashboard as a recording rule: promtool reads rules only. */
const rulesOf = (dashboard: string): string =>
  [...dashboard.matchAll(/"expr": ("(?:[^"\\]|\\.)*")/g)]
    .map(([, text = ""]) => String(JSON.parse(text)).replaceAll("$__rate_interval", "5m"))
    .map((expression, i) => `      - { record: "query:${i}", expr: ${JSON.stringify(expression)} }\n`)
    .join("")

const isValid = (dashboard: string): boolean => {
  const { TILLD_GRAFANA_SCHEMA } = process.env
  if (TILLD_GRAFANA_SCHEMA === undefined) {
    say(`name a copy of ${schemaFile} with TILLD_GRAFANA_SCHEMA`)
    return false
  }
  const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false })
  const validate = ajv.compile(JSON.parse(readFileSync(TILLD_GRAFANA_SCHEMA, "utf8")))
  if (validate(JSON.parse(dashboard))) return true
  for (const { instancePath, message } of validate.errors ?? []) say(`${instancePath} ${message}`)
  return false
}

/** `folder` is for temporary files. */
export const monitoringChecks = (root: string, folder: string) => {
  const rules = join(root, "config/tilld.rules.yml")
  const dashboard = readFileSync(join(root, "config/grafana-dashboard.json"), "utf8")
  let promtool: string | undefined
  const prom = (...args: ReadonlyArray<string>) => {
    promtool ??= findPromtool(folder)
    return existsSync(promtool) || promtool === "promtool" ? run(root, promtool, args) : false
  }
  const queries = join(folder, "queries.yml")
  writeFileSync(queries, `groups:\n  - name: queries\n    rules:\n${rulesOf(dashboard)}`)
  return [
    ["the alert rules", () => prom("check", "rules", rules)],
    ["their unit tests", () => prom("test", "rules", join(root, "test/tools/tilld.rules.test.yml"))],
    ["the dashboard's queries", () => prom("check", "rules", queries)],
    ["the dashboard by Grafana's schema", () => isValid(dashboard)]
  ] as const
}
