import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { transformSync } from "esbuild"

export const load = (url, context, next) => {
  if (!url.startsWith("file:") || !/\.tsx?$/.test(url) || url.includes("/node_modules/")) return next(url, context)
  const file = fileURLToPath(url)
  const { code } = transformSync(readFileSync(file, "utf8"), {
    format: "esm",
    loader: file.endsWith("x") ? "tsx" : "ts",
    jsx: "automatic",
    jsxImportSource: "preact",
    sourcefile: file,
    sourcemap: "inline",
    target: "node20.19"
  })
  return { format: "module", shortCircuit: true, source: code }
}
