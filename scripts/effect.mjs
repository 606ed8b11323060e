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

const languageServiceHost = {
  ...ts.sys,
  useCaseSensitiveFileNames: () => ts.sys.useCaseSensitiveFileNames,
  getCompilationSettings: () => parsed.options,
  getCurrentDirectory: () => root,
  getDefaultLibFileName: ts.getDefaultLibFilePath,
  getScriptFileNames: () => parsed.fileNames,
  // Nothing changes while this runs.
  getScriptVersion: () => "1",
  getScriptSnapshot: (file) => {
    const text = ts.sys.readFile(file)
    return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text)
  }
}
const typescript = ts.createLanguageService(languageServiceHost)
const service = require(`${name}/index.js`)({ typescript: ts }).create({
  languageService: typescript,
  languageServiceHost,
  serverHost: ts.sys,
  project: { getCurrentDirectory: () => root, log: () => {}, projectService: { logger: { info: () => {} } } },
  config
})

const diagnostics = [
  ...parsed.errors,
  ...typescript.getCompilerOptionsDiagnostics(),
  ...parsed.fileNames.flatMap((file) => [
    ...typescript.getSyntacticDiagnostics(file),
    ...service.getSemanticDiagnostics(file)
  ])
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
