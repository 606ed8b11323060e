// Writes the declarations of a module as one text that needs no other file: the module's own, and those of every file
// that it exports whole (`export * from "./…"`). They may name each other, and nothing else.
import { readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import ts from "typescript"

const compilerOptions = {
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.NodeNext,
  isolatedDeclarations: true,
  verbatimModuleSyntax: true,
  strict: true
}

/** The declarations of a file without its imports, and the files that it exports whole. */
const declare = (file) => {
  const { diagnostics, outputText } = ts.transpileDeclaration(readFileSync(file, "utf8"), {
    fileName: file,
    reportDiagnostics: true,
    compilerOptions
  })
  if (diagnostics.length > 0) throw new Error(ts.formatDiagnostics(diagnostics, ts.createCompilerHost(compilerOptions)))
  const source = ts.createSourceFile(file, outputText, ts.ScriptTarget.ES2022)
  const exported = source.statements.filter(
    (statement) => ts.isExportDeclaration(statement) && statement.moduleSpecifier
  )
  const kept = source.statements.filter(
    (statement) => !ts.isImportDeclaration(statement) && !exported.includes(statement)
  )
  return {
    // With its doc comment, and no other.
    text: kept.map((statement) => outputText.slice(statement.getStart(source, true), statement.end)).join("\n"),
    files: exported.map(({ moduleSpecifier }) => join(dirname(file), moduleSpecifier.text))
  }
}

/** The declarations of `entry` and of what it exports whole. */
export const declarations = (entry) => {
  const { files, text } = declare(entry)
  return `${[...files.map(declarations), text].join("\n")}\n`
}
