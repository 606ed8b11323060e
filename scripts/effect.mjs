// The type checker and the rules of Effect's language service over the whole project, in one program. The service's own
// command makes a new program for every fifty files, which takes three times as long.
import { createRequire } from "node:module"
import { join, relative } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("..", import.meta.url))
const require = createRequire(import.meta.url)
const ts = require("typescript")
const name = "@effect/language-service"

const parsed = ts.getParsedCommandLineOfConfigFile(join(root, "tsconfig.json"), undefined, {
  ...ts.sys,
  onUnRecoverableConfigFileDiagnostic: (diagnostic) => {
    throw new Error(ts.flattenDiagnosticMessageText(diagnostic.messageText, "\n"))
  }
})
const config = parsed.options.plugins?.find((plugin) => plugin.name === name)
if (config === undefined) throw new Error(`tsconfig.json does not name the plugin ${name}`)
// What only suggests fails nothing, and would be looked for all the same. What tsconfig.json raises stays.
const { properties: rules } = require(`${name}/schema.json`).definitions
  .effectLanguageServicePluginDiagnosticSeverityDefinition
for (const [rule, { default: severity }] of Object.entries(rules)) {
  if (severity === "suggestion") config.diagnosticSeverity[rule] ??= "off"
}

// What breaks a rule, so that it shows when none was asked. Only in memory.
const canary = { path: join(root, "src/canary.ts"), text: 'import { Effect } from "effect"\nEffect.log("floats")\n' }
const files = [...parsed.fileNames, canary.path]
const read = (file) => (file === canary.path ? canary.text : ts.sys.readFile(file))

const languageServiceHost = {
  ...ts.sys,
  readFile: read,
  fileExists: (file) => file === canary.path || ts.sys.fileExists(file),
  useCaseSensitiveFileNames: () => ts.sys.useCaseSensitiveFileNames,
  getCompilationSettings: () => parsed.options,
  getProjectReferences: () => parsed.projectReferences,
  getCurrentDirectory: () => root,
  getDefaultLibFileName: ts.getDefaultLibFilePath,
  getScriptFileNames: () => files,
  // Nothing changes while this runs.
  getScriptVersion: () => "1",
  getScriptSnapshot: (file) => {
    const text = read(file)
    return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text)
  }
}
const languageService = ts.createLanguageService(languageServiceHost)
const service = require(`${name}/index.js`)({ typescript: ts }).create({
  languageService,
  languageServiceHost,
  serverHost: ts.sys,
  project: { getCurrentDirectory: () => root, log: () => {}, projectService: { logger: { info: () => {} } } },
  config
})

const brokenRules = (file) => service.getSemanticDiagnostics(file).filter(({ source }) => source === "effect")
const [found, ...more] = brokenRules(canary.path)
if (found?.category !== ts.DiagnosticCategory.Error || more.length > 0) {
  throw new Error(`${name} does not find what is wrong with:\n${canary.text}`)
}

const program = languageService.getProgram()
const diagnostics = [
  ...parsed.errors,
  ...languageService.getCompilerOptionsDiagnostics(),
  ...program.getSyntacticDiagnostics(),
  ...program.getSemanticDiagnostics(),
  ...parsed.fileNames.flatMap(brokenRules)
]
for (const { category, file, messageText, start } of diagnostics) {
  const { character, line } = file?.getLineAndCharacterOfPosition(start) ?? {}
  const place = file === undefined ? "" : `${relative(root, file.fileName)}(${line + 1},${character + 1}): `
  console.log(`${place}${ts.DiagnosticCategory[category]}: ${ts.flattenDiagnosticMessageText(messageText, "\n")}`)
}

const { Error: error, Warning: warning } = ts.DiagnosticCategory
const refused = diagnostics.filter(({ category }) => category === error || category === warning)
console.log(`${parsed.fileNames.length} files, ${refused.length} errors and warnings`)
if (refused.length > 0) process.exitCode = 1
