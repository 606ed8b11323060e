// Writes the generated parts of docs/: the commands and their options as --help has them, the keys of the configuration as
// the schema and config/tilld.example.toml have them, the errors, the questions put to providers and the conditions; and the man page.
// With --check: fails where a page says something else.
import { Console } from "node:console"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Writable } from "node:stream"
import { fileURLToPath } from "node:url"
import "./typescript.mjs"

const root = fileURLToPath(new URL("..", import.meta.url))
const read = (file) => readFileSync(join(root, file), "utf8")

/** A bar would end a table's cell. */
const cell = (text) => text.replaceAll("|", "\\|")
const code = (text) => `\`${cell(text)}\``
const line = (cells) => `| ${cells.join(" | ")} |`
const table = (head, rows) => [head, head.map(() => "---"), ...rows].map(line).join("\n")

/** What `tilld … --help` prints. All in this process: each would load the program once more. */
const help = async (words) => {
  const [{ Effect }, { commandLine }, { runCommand }] = await Promise.all([
    import("effect"),
    import("../src/commands/commandLine.ts"),
    import("../src/commands/runCommand.ts")
  ])
  const said = []
  const out = new Writable({ write: (chunk, _, done) => done(void said.push(chunk)) })
  const surroundings = { env: {}, console: new Console(out), standardError: undefined, isForJournal: false }
  const code = await Effect.runPromise(runCommand(commandLine(["node", "tilld", ...words, "--help"]), surroundings))
  if (code !== 0) throw new Error(`tilld ${words.join(" ")} --help: ${code}: ${said.join("")}`)
  return said.join("")
}

/** The sections of a help page by their headings, as lines. */
const sections = (text) =>
  Object.fromEntries(
    text
      .split(/^(?=[A-Z]+$)/m)
      .slice(1)
      .map((part) => [
        part.split("\n", 1)[0],
        part
          .split("\n")
          .slice(1)
          .filter((line) => line.trim() !== "")
      ])
  )

/** Pairs of a line at the least indent and the lines under it, as one text. */
const definitions = (lines) => {
  const found = []
  for (const line of lines) {
    if (/^ {2}\S/.test(line)) found.push([line.trim(), []])
    else found.at(-1)[1].push(line.trim())
  }
  return found.map(([name, text]) => [name, text.join(" ")])
}

const joined = (lines) => lines.map((line) => line.trim()).join(" ")

/** Every command that is none of a group only, with its usage, what it does, and its options. */
const readCommands = async () => {
  const names = sections(await help([])).COMMANDS.flatMap(
    (line) => /^ {2}(\S+(?: \S+)?)(?: {2,}|$)/.exec(line)?.[1] ?? []
  )
  const groups = new Set(names.flatMap((name) => (name.includes(" ") ? [name.split(" ")[0]] : [])))
  const commands = []
  for (const name of names) {
    const { DESCRIPTION = [], OPTIONS = [], USAGE = [] } = sections(await help(name.split(" ")))
    const usage = joined(USAGE).replace(/ \[--(config FILE|json)\]/g, "")
    // A group that does nothing by itself.
    if (groups.has(name) && OPTIONS.length === 0) continue
    commands.push({ name, usage, does: joined(DESCRIPTION), options: definitions(OPTIONS) })
  }
  return commands
}

let commandsRead
const allCommands = () => (commandsRead ??= readCommands())

/** A text of the man page, in which a backslash and a dot at the start of a line would be commands. */
const roff = (text) =>
  text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replace(/^([.'])/, "\\&$1")
    .replaceAll(/[^\0-\x7f]/gu, (letter) => `\\[u${letter.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}]`)

const manPage = async () => {
  const { description, version } = JSON.parse(read("package.json"))
  const commands = (await allCommands()).flatMap(({ does, options, usage }) => [
    ".TP",
    `.B ${roff(usage)}`,
    roff(does),
    ...options
      .filter(([option]) => !/^--(config FILE|json)$/.test(option))
      .flatMap(([option, means]) => [".RS", ".TP", `.I ${roff(option)}`, roff(means), ".RE"])
  ])
  return [
    `.TH TILLD 1 "" "tilld ${version}" "User Commands"`,
    ".SH NAME",
    `tilld \\- ${roff(description)}`,
    ".SH SYNOPSIS",
    ".B tilld",
    "COMMAND [OPTIONS]",
    ".SH COMMANDS",
    "Most commands take \\fB\\-\\-config\\fR FILE, the configuration, and \\fB\\-\\-json\\fR, which prints the result as JSON.",
    ...commands,
    ".SH EXIT STATUS",
    "0: done. 1: not done, or not what was wanted. 2: the command line, the configuration or the machine has to be changed.",
    ".SH FILES",
    "/etc/tilld/tilld.toml: the configuration. /var/lib/tilld/tilld.db: the database, with the control socket beside it.",
    ".SH SEE ALSO",
    "The pages in the folder docs beside the program."
  ].join("\n")
}

const commandsPart = async () => {
  const commands = await allCommands()
  const meanings = new Map()
  for (const { name, options } of commands) {
    for (const [option, means] of options) {
      const by = meanings.get(option) ?? new Map()
      by.set(means, [...(by.get(means) ?? []), name])
      meanings.set(option, by)
    }
  }
  const everywhere = commands.length / 2
  const rows = [...meanings]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([option, by]) =>
      [...by].map(([means, of]) => [
        code(option),
        cell(means),
        of.length > everywhere ? "most" : of.map(code).join(", ")
      ])
    )
  return `${table(
    ["command", "does"],
    commands.map(({ does, usage }) => [code(usage), cell(does)])
  )}

## Every option

${table(["option", "means", "of"], rows)}
`
}

/** The keys of the example with their values, and what the comments beside and above them say. */
const readExample = () => {
  const keys = []
  let section = ""
  let above = []
  let aboveSection = ""
  for (const line of read("config/tilld.example.toml").split("\n")) {
    const comment = /^# ?(.*)$/.exec(line)?.[1]
    const key = /^(?:# )?(\w+) = (".*?"|\[.*?\]|[^#]*?)(?: +# (.*))?$/.exec(line)
    const head = /^\[+([\w.]+)\]+(?: +# (.*))?$/.exec(line)
    if (key) {
      const [, name, value, beside = ""] = key
      keys.push({ section, name, value: value.trim(), says: [...above, beside].join(" ").trim(), of: aboveSection })
      above = []
      aboveSection = ""
    } else if (head) {
      section = head[1]
      aboveSection = [...above, head[2] ?? ""].join(" ").trim()
      above = []
    } else if (comment !== undefined) above.push(comment)
    else if (/^ +# /.test(line)) keys.at(-1).says += ` ${line.trim().slice(2)}`
    else above = []
  }
  return keys
}

/** What the schema takes at each key of the file. */
const readSchema = async () => {
  const [{ SchemaAST: AST }, { File }] = await Promise.all([
    import("effect"),
    import("../src/Settings/configSchema.ts")
  ])
  const forms = new Map()
  const descriptionOf = (ast) => ast.annotations[AST.DescriptionAnnotationId]
  const walk = (ast, path) => {
    const said = descriptionOf(ast)
    if (typeof said === "string" && said.startsWith("must be ")) {
      forms.set(path, said.slice("must be ".length))
      if (!said.endsWith("an array of sections")) return
    }
    if (AST.isTransformation(ast)) return walk(ast.from, path)
    if (AST.isRefinement(ast)) return walk(ast.from, path)
    if (AST.isTupleType(ast)) return walk(ast.rest[0].type, path)
    if (AST.isUnion(ast)) {
      for (const type of ast.types) if (!AST.isUndefinedKeyword(type)) walk(type, path)
      return
    }
    if (AST.isSuspend(ast)) return walk(ast.f(), path)
    if (AST.isTypeLiteral(ast)) {
      for (const { name, type } of ast.propertySignatures) walk(type, path === "" ? name : `${path}.${name}`)
      return
    }
    throw new Error(`${path}: ${ast._tag}`)
  }
  walk(File.ast, "")
  return forms
}

/** A key's path without the names of one chain, mode or currency: their keys are the same. */
const general = (path) =>
  path
    .replace(/^chains\.\w+\.\w+/, "chains.CHAIN.MODE")
    .replace(/tokens\.\w+/, "tokens.TOKEN")
    .replace(/^rates\.fixed\.\w+/, "rates.fixed.CURRENCY")

/** What tilld knows of the public networks by itself. */
const presetKeys = new Set(["chain_id", "confirmations", "poll_interval", "address", "decimals"])

const configurationPart = async () => {
  const forms = new Map([...(await readSchema())].map(([path, form]) => [general(path), form]))
  const given = new Set(["chains.CHAIN.MODE.policy"])
  const sections = new Map()
  for (const { name, of, says, section, value } of readExample()) {
    const [path, key] = general(`${section}.${name}`)
      .match(/(.*)\.(\w+)$/)
      .slice(1)
    const known = sections.get(path) ?? { of, rows: new Map() }
    const form = forms.get(`${path}.${key}`)
    if (form === undefined) throw new Error(`config/tilld.example.toml has ${path}.${key}, the schema has not`)
    given.add(`${path}.${key}`)
    const needed = says.startsWith("NEEDED") || of.startsWith("NEEDED") || key === "rpc_urls"
    const preset = path.startsWith("chains.") && presetKeys.has(key)
    const otherwise = needed ? "needed" : preset ? "[of the public network](#the-public-networks)" : code(value)
    const means = says.replace(/^NEEDED: /, "")
    if (!known.rows.has(key)) known.rows.set(key, [code(key), otherwise, cell(form), cell(means)])
    sections.set(path, known)
  }
  const missing = [...forms.keys()].filter((path) => !given.has(path))
  if (missing.length > 0) throw new Error(`config/tilld.example.toml lacks ${missing.join(", ")}`)
  const keys = [...sections].map(([path, { of, rows }]) =>
    [
      `## \`${path.endsWith(".policy") ? `[[${path}]]` : `[${path}]`}\``,
      of,
      table(["key", "default", "form", "means"], [...rows.values()])
    ]
      .filter((part) => part !== "")
      .join("\n\n")
  )
  return [...keys, await networksPart()].join("\n\n")
}

const networksPart = async () => {
  const [{ presets }, { chainTraits }] = await Promise.all([
    import("../src/Settings/publicNetworks.ts"),
    import("../src/Domain/Chain.ts")
  ])
  const rows = ["live", "test"].flatMap((mode) =>
    Object.entries(chainTraits).map(([chain, { confirmations, nativeToken, pollInterval }]) => {
      const { chainId, name, tokens } = presets[mode][chain]
      const coin = nativeToken === "ETH" ? [nativeToken] : []
      const taken = [...coin, ...Object.keys(tokens)].join(", ")
      return [code(`${chain}.${mode}`), name, `${chainId}`, `${confirmations}`, pollInterval, taken]
    })
  )
  return `## The public networks

${table(["section", "network", "chain_id", "confirmations", "poll_interval", "takes"], rows)}

Another ERC-20 token than USDC, USDT, DAI and WBTC is a change of the code.`
}

const errorsPart = async () => {
  const [{ meanings }, { statusOf }] = await Promise.all([
    import("../src/Documents/errors.ts"),
    import("../src/Domain/ApiError.ts")
  ])
  const rows = Object.entries(meanings).map(([name, when]) => [code(name), `${statusOf[name]}`, cell(when)])
  return table(["code", "status", "when, and what to do"], rows)
}

const providersPart = async () => {
  const { questions } = await import("../src/Chains/evidence/questions.ts")
  const rows = questions.map(({ agree, alone, answers, asks, differ }) =>
    [asks, agree, answers, differ, alone].map(cell)
  )
  return table(["asked", "who must agree", "what counts as an answer", "two differ", "no other answers"], rows)
}

const runbookPart = async () => {
  const [{ Duration }, { kinds }] = await Promise.all([import("effect"), import("../src/Conditions/kinds.ts")])
  const page = read("docs/runbook.md")
  const rows = Object.entries(kinds).map(([key, { about, patience, severity }]) => {
    if (!page.includes(`\n## ${key}\n`)) throw new Error(`docs/runbook.md does not say what to do about ${key}`)
    const after = Duration.toMillis(patience) === 0 ? "at once" : Duration.format(patience)
    return [`[\`${key}\`](#${key})`, severity, after, cell(about)]
  })
  return table(["condition", "severity", "told after", "what is wrong"], rows)
}

const marker = "<!-- The rest is generated: npm run docs -->"
const parts = {
  "docs/commands.md": commandsPart,
  "docs/configuration.md": configurationPart,
  "docs/errors.md": errorsPart,
  "docs/providers.md": providersPart,
  "docs/runbook.md": runbookPart
}
/** Files that are generated as a whole. */
const whole = { "docs/tilld.1": manPage }
const isCheck = process.argv.includes("--check")
const present = (file) => (existsSync(join(root, file)) ? read(file) : "")
for (const [file, part] of Object.entries({ ...parts, ...whole })) {
  const [written = ""] = present(file).split(marker)
  const made = (await part()).trim()
  const text = file in whole ? `${made}\n` : `${written}${marker}\n\n${made}\n`
  if (text === present(file)) continue
  if (isCheck) {
    console.error(`${file} is out of date: npm run docs`)
    process.exitCode = 1
  } else writeFileSync(join(root, file), text)
}
