// Compiles the sandbox's contracts into src/Sandbox/contracts.json. With --check it only compares, and fails on a difference.
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { pathToFileURL } from "node:url"

const require = createRequire(import.meta.url)
const solc = require("solc")
const sandbox = new URL("../src/Sandbox/", import.meta.url)
const output = new URL("contracts.json", sandbox)

const sources = Object.fromEntries(
  readdirSync(new URL("contracts/", sandbox))
    .filter((name) => name.endsWith(".sol"))
    .sort()
    .map((name) => [name, { content: readFileSync(new URL(`contracts/${name}`, sandbox), "utf8") }])
)

const compiled = JSON.parse(
  solc.compile(
    JSON.stringify({
      language: "Solidity",
      sources,
      settings: {
        evmVersion: "paris", // runs on every chain that the sandbox imitates, whatever its hardfork
        optimizer: { enabled: true, runs: 200 },
        metadata: { bytecodeHash: "none", appendCBOR: false }, // the same bytes wherever it is compiled
        outputSelection: { "*": { "*": ["abi", "evm.bytecode.object"] } }
      }
    })
  )
)

const problems = (compiled.errors ?? []).map((problem) => problem.formattedMessage)
if (problems.length > 0) {
  console.error(problems.join("\n"))
  process.exit(1)
}

const artifacts = {}
for (const file of Object.keys(sources)) {
  for (const [name, { abi, evm }] of Object.entries(compiled.contracts[file])) {
    // Interfaces and abstract contracts have no code.
    if (evm.bytecode.object !== "") artifacts[name] = { abi, bytecode: `0x${evm.bytecode.object}` }
  }
}

// Multicall3 is not compiled here: viem carries its creation code, without exporting it. The constructor ends with
// RETURN INVALID (f3fe); what follows is the code to put at Multicall3's usual address.
const constantsUrl = new URL("../_esm/constants/contracts.js", pathToFileURL(require.resolve("viem")))
const constants = readFileSync(constantsUrl, "utf8")
const multicall3 = /multicall3Bytecode = '0x[0-9a-f]*?f3fe([0-9a-f]+)'/.exec(constants)
if (multicall3 === null) {
  console.error("viem no longer carries multicall3Bytecode in constants/contracts.js: find where it went")
  process.exit(1)
}
artifacts.Multicall3 = { runtime: `0x${multicall3[1]}` }

const text = `${JSON.stringify(artifacts, null, 2)}\n`
if (!process.argv.includes("--check")) {
  writeFileSync(output, text)
} else if (readFileSync(output, "utf8").replaceAll("\r\n", "\n") !== text) {
  console.error("src/Sandbox/contracts.json is not what its sources compile to: run node scripts/contracts.mjs")
  process.exit(1)
}
