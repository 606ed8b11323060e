import { spawnSync } from "node:child_process"
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { dirname, join, relative } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { createClient } from "../src/client/index.ts"
import { makeAuthority } from "../src/Sandbox/Authority.ts"
import { type Chains, FiveChains, localChain, makeHome, pay, serve } from "./lib/daemon.ts"
import { needs } from "./lib/needs.ts"
import { folderWithTilld } from "./lib/packed.ts"
import type { Program } from "./lib/programs.ts"
import { liveTest, liveTestOn } from "./lib/scopedTest.ts"
import { temporaryFolder } from "./lib/store.ts"
import { PATH, root, start, startTilld, tilldJson } from "./lib/tilld.ts"

const docs = readdirSync(join(root, "docs")).filter((file) => file.endsWith(".md"))
const files = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", ...docs.map((file) => `docs/${file}`)]
const pages = new Map(files.map((file) => [file, readFileSync(join(root, file), "utf8")]))
const textOf = (file: string) => pages.get(file) ?? expect.fail(`there is no ${file}`)

/** The code blocks of a language on a page, or in its section under a heading. */
const blocks = (file: string, language: string, heading?: string): ReadonlyArray<string> => {
  const page = textOf(file)
  const section =
    heading === undefined ? page : (page.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? "")
  return [...section.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].flatMap(([, found, code = ""]) =>
    found === language ? [code] : []
  )
}

const polygonAlone = Effect.map(localChain("polygon"), (chain) => new Map([["polygon", chain]] as const))
const twoChains = Effect.zipWith(
  polygonAlone,
  localChain("base"),
  (chains, base): Chains => new Map([...chains, ["base", base]])
)

/** A daemon on local chains, which has looked at polygon: a quote needs a gas price, which comes with that. */
const startDaemon = Effect.fn("startDaemon")(function* (chains: Chains) {
  const home = yield* makeHome({ chains })
  const env = { TILLD_RATES__FIXED__EUR: "1.10", TILLD_RATES__FIXED__MATIC: "0.5" }
  const running = yield* startTilld(["serve", "--config", home.config], { env })
  const listening = JSON.parse(yield* running.line(/"listening"/))
  yield* running.line((line) => line.includes("first head") && line.includes("polygon"))
  const asked = ["keys", "create", "--mode", "test", "--name", "readme", "--config", home.config]
  const { key } = yield* tilldJson<{ key: string }>(asked, { env })
  return { KEY: key, TILLD: `http://127.0.0.1:${listening.annotations.port}`, TILLD_CONFIG: home.config }
})

/** Runs a script in bash, which must succeed and say nothing but that a key was made. Returns what it prints. */
const bash = (script: string, env: Readonly<Record<string, string>>, cwd = root): string => {
  const { status, stderr, stdout } = spawnSync("bash", ["-euo", "pipefail", "-c", script], {
    cwd,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH, ...env }
  })
  expect({ status, stderr: stderr.replace(/^This is key .*\n/gm, "") }).toEqual({ status: 0, stderr: "" })
  return stdout
}

/** Defines the command as an installation has it. */
const knownTilld = `tilld() { '${process.execPath}' '${join(root, "dist/tilld.js")}' "$@"; }`

/** Signatures, right ones and wrong ones. */
const vectorsFile = join(root, "test/vectors/webhook.json")
const vectors: ReadonlyArray<{
  readonly valid: boolean
  readonly body: string
  readonly secret: string
  readonly signature: string
}> = JSON.parse(readFileSync(vectorsFile, "utf8"))

interface Language {
  /** Programs that are needed in addition to Node. */
  readonly needed: Program | undefined
  readonly run: ReadonlyArray<string>
  readonly files: (code: string) => Readonly<Record<string, string>>
}

/** How a language's function is run: the files around it, and a program that prints what it says of each vector. */
const languages: Readonly<Record<string, Language>> = {
  js: {
    needed: undefined,
    run: ["node", "main.mjs", vectorsFile],
    files: (code: string) => ({
      "verify.mjs": code,
      "main.mjs": `import { readFileSync } from "node:fs"
        import { isFromTilld } from "./verify.mjs"
        const vectors = JSON.parse(readFileSync(process.argv[2], "utf8"))
        console.log(JSON.stringify(vectors.map((v) => isFromTilld(Buffer.from(v.body), v.signature, v.secret))))`
    })
  },
  python: {
    needed: "python3",
    run: ["python3", "main.py", vectorsFile],
    files: (code: string) => ({
      "verify.py": code,
      "main.py": `
import json, sys
from verify import is_from_tilld
with open(sys.argv[1], encoding="utf-8") as file: vectors = json.load(file)
print(json.dumps([is_from_tilld(v["body"].encode(), v["signature"], v["secret"]) for v in vectors]))
`
    })
  },
  php: {
    needed: "php",
    run: ["php", "main.php", vectorsFile],
    files: (code: string) => ({
      "verify.php": `<?php\n${code}`,
      "main.php": `<?php
        require __DIR__ . '/verify.php';
        $vectors = json_decode(file_get_contents($argv[1]), true);
        echo json_encode(array_map(fn($v) => is_from_tilld($v['body'], $v['signature'], $v['secret']), $vectors));`
    })
  },
  go: {
    needed: "go",
    run: ["go", "run", ".", vectorsFile],
    files: (code: string) => ({
      "go.mod": "module verify\n",
      "verify.go": `package main\n\n${code}`,
      "main.go": `package main
        import ("encoding/json"; "fmt"; "os")
        func main() {
          text, _ := os.ReadFile(os.Args[1])
          var vectors []struct { Body, Signature, Secret string }
          if err := json.Unmarshal(text, &vectors); err != nil { panic(err) }
          said := []bool{}
          for _, v := range vectors { said = append(said, IsFromTilld([]byte(v.Body), v.Signature, v.Secret)) }
          out, _ := json.Marshal(said)
          fmt.Println(string(out))
        }`
    })
  }
}

describe("the documentation", () => {
  needs("bash", "curl", "openssl")

  liveTestOn(FiveChains.layer)("its API commands work unchanged", function* () {
    const env = yield* startDaemon(yield* FiveChains)
    const commands = [...blocks("docs/integrate.md", "sh"), ...blocks("docs/webhooks.md", "sh")]
    expect(commands.length).toBeGreaterThan(3)
    const run = (script: string) => bash(script, env)
    const answers = run(commands.map((command) => `${command}\necho`).join("\n"))
      .replaceAll("}{", "}\n{")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line))
    expect(answers.filter((answer) => "error" in answer)).toEqual([])
    const examples = blocks("docs/integrate.md", "json")
      .slice(0, 2)
      .map((text) => Object.keys(JSON.parse(text)))
    expect([answers[0], answers[1]].map((answer) => Object.keys(answer))).toEqual(examples)
    const ids = answers.map((answer) => String(answer.id ?? "list").replace(/_.*/, ""))
    expect(ids).toEqual(["inv", "pay", "pay", "list", "pay", "pay", "list", "quote", "wh", "list", "list", "list"])

    const invoices = run(
      [knownTilld, ...blocks("docs/invoices.md", "sh")].join("\necho\n").replaceAll("\ncurl", "\necho; curl")
    )
    const seen = (invoices.match(/^\{.*$/gm) ?? []).map((line) => JSON.parse(line))
    expect(seen.map(({ data, status }) => status ?? data[0].status)).toEqual([
      ...["open", "open", "cancelled", "cancelled", "open"]
    ])
    const connected = run([knownTilld, ...blocks("docs/plugins.md", "sh")].join("\necho\n"))
    expect(connected).toMatch(/\[\{"paymentMethodId":"[A-Z]+-[A-Z]+".*\/i\/inv_[\w-]+\n$/s)
    const [, pay = "", ...others] = blocks("docs/sandbox.md", "sh")
    expect(others).toEqual([])
    const paid = run(`${knownTilld}\nPAYMENT=${answers[1].id}\n${pay}`)
    expect(paid.match(/^Sent .* in 0x[0-9a-f]{64}\nTo expect: .*(?:missing|confirmed|wrong_chain)/gm)).toHaveLength(3)

    const [keys = "", ...rest] = blocks("docs/keys.md", "sh")
    expect(rest).toEqual([])
    const listed = run(`${knownTilld}\n${keys}`)
    const desk = yield* temporaryFolder
    const books = blocks("docs/books.md", "sh")
    expect(books).toHaveLength(4)
    const read = bash(`${knownTilld}\n${books.join("\n")}`, env, desk)
    expect(readFileSync(join(desk, "ledger.csv"), "utf8")).toMatch(/^account,mode,id,at,kind,refund,status,payment,/)
    expect(read).toMatch(/TIME +KIND +WHAT +[\s\S]*\{"data":\[.*\],"cursor":null\}$/)
    const [shop = "", ...more] = blocks("docs/checkout.md", "sh")
    expect(more).toEqual([])
    const logos = join(dirname(env.TILLD_CONFIG), "logos")
    mkdirSync(logos)
    writeFileSync(join(logos, "corner.svg"), "<svg xmlns='http://www.w3.org/2000/svg'/>")
    const look = run(`${knownTilld}\n${shop}`)
    expect(look).toMatch(/name +Corner shop\n[\s\S]*frames +https:\/\/shop\.example\.com, http:\/\/localhost:3000\n$/)
    expect(listed).toMatch(/rolled to key_.* 600\/min 20000\/h +203\.0\.113\.7\/32,2001:db8:5::\/48/)
  })

  liveTest("its commands for exceptions work unchanged: the money is found, and recorded as sent back", function* () {
    const chain = yield* localChain("polygon")
    const daemon = yield* serve(yield* makeHome({ chains: new Map([["polygon", chain]]) }))
    const order = yield* daemon.create({ chain: "polygon", currency: "USDC", amount: "1000", expiresIn: 60 })
    const txHash = yield* pay(chain, { ...order, currency: "USDT" })
    yield* chain.mine(20)
    yield* daemon.hasRead(chain)
    const refund = `0x${"a".repeat(64)}`
    const [script = ""] = blocks("docs/exceptions.md", "sh")
    const stdout = bash(script, { KEY: daemon.key, TILLD: daemon.url, REFUND_TX: refund })
    expect(JSON.parse(stdout)).toMatchObject({
      payment: order.id,
      kind: "wrong_token",
      txHash,
      resolution: "refunded",
      resolutionTxHash: refund
    })
  })

  liveTest("its commands for backup and restore work unchanged", function* () {
    const chains = new Map([["polygon", yield* localChain("polygon")]] as const)
    const daemon = yield* serve(yield* makeHome({ chains }))
    const order = yield* daemon.create({ chain: "polygon", currency: "USDC", amount: "1000" })
    const mnt = yield* temporaryFolder
    const run = (script: string) =>
      bash(`${knownTilld}; systemctl() { :; }\n${script.replaceAll("/mnt/backup", mnt)}`, {
        TILLD_CONFIG: daemon.home.config,
        XDG_CACHE_HOME: mnt
      })
    const [once = "", hourly = "", back = "", ...more] = blocks("docs/backup.md", "sh")
    expect(more).toEqual([])
    expect(run(once)).toMatch(/^Backup .*, 1 payments, SHA-256 ([0-9a-f]{64})\n\S+Z sha256 \1\n$/)
    expect(run(hourly)).toMatch(/^Backup .*\/tilld-\d\d\.db: /)
    yield* daemon.end("SIGTERM")
    expect(run(back)).toMatch(/is restored from[\s\S]*1 open in the backup[\s\S]*Start tilld now/)
    const again = yield* serve(daemon.home, daemon.key)
    expect((yield* again.payment(order)).status).toBe("pending")
  })

  liveTest("its commands that fetch Node unpack the archive of this release if the digest is right", function* () {
    const site = yield* temporaryFolder
    const here = join(yield* temporaryFolder, "local")
    mkdirSync(here)
    const archive = "node-v24.9.0-linux-x64.tar.xz"
    const sum = `sha256sum ${archive} | tee SHASUMS256.txt | sed s/linux/darwin/ > others; cat others >> SHASUMS256.txt`
    bash(`mkdir -p made/bin; touch made/bin/node; tar -cJf ${archive} made; ${sum}`, {}, site)
    const [script = "", ...more] = blocks("docs/install.md", "sh")
    expect(more).toEqual([])
    const run = () =>
      bash(`curl() { cp "${site}/\${2##*/}" .; }\n${script.replace("/usr/local", here)}`, {}, dirname(here))
    expect(run()).toBe(`${archive}: OK\n`)
    expect(existsSync(join(here, "bin/node"))).toBe(true)
    rmSync(join(here, "bin"), { recursive: true })
    const wrong = readFileSync(join(site, "SHASUMS256.txt"), "utf8").replace(/^./, (digit) =>
      digit === "0" ? "1" : "0"
    )
    writeFileSync(join(site, "SHASUMS256.txt"), wrong)
    expect(run).toThrow()
    expect(existsSync(join(here, "bin"))).toBe(false)
  })

  liveTest("its client examples work unchanged where only tilld is installed", function* () {
    const env = yield* startDaemon(yield* polygonAlone)
    const cwd = yield* folderWithTilld
    const code = blocks("docs/client.md", "js")
    expect(code.length).toBe(4)
    writeFileSync(join(cwd, "shop.mjs"), code.join("\n"))
    writeFileSync(
      join(cwd, "main.mjs"),
      `import { readFileSync } from "node:fs"
        const vectors = JSON.parse(readFileSync(process.argv[2], "utf8"))
        import { createHmac } from "node:crypto"
        const [{ body, secret, signature }] = vectors
        process.env.WEBHOOK_SECRET = secret
        const { receive } = await import("./shop.mjs")
        const key = Buffer.from(secret.slice("whsec_".length), "base64")
        const now = Math.floor(Date.now() / 1000)
        for (const [at, text] of [[now, body], [now, body.replace("order-1", "order-2")], [now - 360, body]]) {
          const signed = createHmac("sha256", key).update(\`evt_1.\${at}.\${body}\`).digest("base64")
          const headers = {
            "x-service-signature": signature,
            "webhook-id": "evt_1",
            "webhook-timestamp": String(at),
            "webhook-signature": \`v1,\${signed}\`
          }
          const answer = await receive(new Request("http://shop.example", { method: "POST", headers, body: text }))
          console.log(answer.status, (await answer.text()).slice(0, 23))
        }`
    )
    const { ended } = yield* start(process.execPath, ["main.mjs", vectorsFile], { cwd, env })
    const { stderr, stdout } = yield* ended
    expect(stderr).toBe("")
    expect(stdout).toMatch(/^Send 54\.\d+ USDC on polygon to 0x[0-9a-fA-F]{40}\ntrue\norder-3 pending 0\nevt_/)
    expect(stdout.split("\nevt_")[1]).toBe(
      "4JqJ2mCwT1yGkZb6rXn0aQ payment.created order-1\n204 \n400 The signature is not of\n400 The webhook was signed \n"
    )
  })

  liveTest("README's first order sends the customer to the checkout page, and ships once it is paid", function* () {
    const env = yield* startDaemon(yield* twoChains)
    const cwd = yield* folderWithTilld
    writeFileSync(join(cwd, "shop.mjs"), blocks("README.md", "js").join("\n"))
    writeFileSync(join(cwd, "receiver.mjs"), blocks("docs/integrate.md", "js").join("\n"))
    const authority = yield* makeAuthority
    const identity = yield* authority.issue(["localhost"])
    mkdirSync(join(cwd, ".sandbox"))
    writeFileSync(join(cwd, ".sandbox/ca.pem"), authority.certificate)
    writeFileSync(join(cwd, ".sandbox/localhost.pem"), identity.certificate)
    writeFileSync(join(cwd, ".sandbox/localhost-key.pem"), identity.key)
    writeFileSync(
      join(cwd, "main.mjs"),
      `import { createHmac } from "node:crypto"
        process.env.WEBHOOK_SECRET = "whsec_" + Buffer.alloc(32, 7).toString("base64")
        const { checkout, hook } = await import("./shop.mjs")
        const { server } = await import("./receiver.mjs")
        const sent = await checkout("order-9")
        const { pathname } = new URL(sent.headers.get("location"))
        console.log(sent.status, pathname, (await fetch(process.env.TILLD + pathname)).status)
        const at = Math.floor(Date.now() / 1000)
        for (const event of ["invoice.processing", "invoice.paid"]) {
          const body = JSON.stringify({ id: "evt_1", event, createdAt: new Date().toISOString(), data: { id: "inv_1", merchantRef: "order-9" } })
          const hmac = (key, text, form) => createHmac("sha256", key).update(text).digest(form)
          const headers = {
            "x-service-signature": hmac(process.env.WEBHOOK_SECRET, body, "hex"),
            "webhook-id": "evt_1",
            "webhook-timestamp": String(at),
            "webhook-signature": "v1," + hmac(Buffer.alloc(32, 7), \`evt_1.\${at}.\${body}\`, "base64")
          }
          const request = new Request("http://shop.example", { method: "POST", headers, body })
          console.log((await hook(request, async (order) => console.log("ships", order))).status)
          const post = (sent) => fetch("https://localhost:" + server.address().port, { method: "POST", headers: sent, body })
          console.log((await post(headers)).status, (await post({})).status)
        }
        server.close()`
    )
    const more = { NODE_EXTRA_CA_CERTS: join(cwd, ".sandbox/ca.pem"), PORT: "0" }
    const { ended } = yield* start(process.execPath, ["main.mjs"], { cwd, env: { ...env, ...more } })
    const { stderr, stdout } = yield* ended
    expect(stderr).toBe("")
    expect(stdout).toMatch(/^303 \/pay\/\S+ 200\n204\n204 400\nships order-9\n204\nship order-9\n204 400\n$/)
  })

  describe.each(Object.entries(languages))(
    "its function that verifies signatures in %s",
    (language, { files, needed, run }) => {
      if (needed !== undefined) needs(needed)

      liveTest("accepts only valid ones", function* () {
        const cwd = yield* temporaryFolder
        const [code = expect.fail(`no ${language}`), ...more] = blocks(
          "docs/webhooks.md",
          language,
          "Verify a signature in your language"
        )
        expect(more).toEqual([])
        for (const [name, text] of Object.entries(files(code))) writeFileSync(join(cwd, name), text)
        const [command = "", ...args] = run
        const ended = spawnSync(command, args, { cwd, encoding: "utf8", env: { PATH, HOME: cwd } })
        expect(ended.stderr).toBe("")
        expect(JSON.parse(ended.stdout)).toEqual(vectors.map(({ valid }) => valid))
      })
    }
  )

  it("README is a front page, no page is long, and no heading occurs twice", () => {
    const lines = (file: string) => textOf(file).split("\n").length - 1
    expect(lines("README.md")).toBeLessThanOrEqual(150)
    expect(docs.filter((file) => lines(`docs/${file}`) > 250)).toEqual([])
    const headings = files
      .filter((file) => file !== "CHANGELOG.md")
      .flatMap(
        (file) =>
          textOf(file)
            .replace(/^```[\s\S]*?^```$/gm, "")
            .match(/^#+ .*$/gm) ?? []
      )
      .map((heading) => heading.replace(/^#+ /, ""))
    expect(headings.filter((heading, i) => headings.indexOf(heading) < i)).toEqual([])
  })

  it("every page is in the index, and every link leads to an existing file and heading", () => {
    const anchors = new Map(
      files.map((file) => [
        file,
        new Set(
          [...textOf(file).matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
            heading
              .toLowerCase()
              .replace(/[^\w\- ]/g, "")
              .replaceAll(" ", "-")
          )
        )
      ])
    )
    const links = files.flatMap((file) =>
      [...textOf(file).matchAll(/\]\(([^)\s]+)\)|<img src="([^"]+)"/g)].map(([, link, picture]) => ({
        file,
        link: link ?? picture ?? ""
      }))
    )
    const broken = links.filter(({ file, link }) => {
      if (/^https:/.test(link)) return false
      const [path = "", anchor] = link.split("#")
      const target = path === "" ? file : relative(root, join(root, dirname(file), path))
      if (!existsSync(join(root, target))) return true
      return anchor !== undefined && anchors.get(target)?.has(anchor) !== true
    })
    expect(broken).toEqual([])
    const indexed = new Set(links.filter(({ file }) => file === "docs/index.md").map(({ link }) => link))
    expect(docs.filter((file) => file !== "index.md" && !indexed.has(file))).toEqual([])
  })

  it("every file and folder of the source that a page names is there", () => {
    const named = ["docs/architecture.md", "SECURITY.md"].flatMap((file) =>
      [...textOf(file).matchAll(/`((?:src|test|config|scripts)\/[\w./{},-]+)`/g)].map(([, path = ""]) => path)
    )
    expect(named.length).toBeGreaterThan(200)
    // The shell expands braces.
    const { stderr } = spawnSync("bash", ["-c", `ls -d ${named.join(" ")}`], { cwd: root, encoding: "utf8" })
    expect(stderr).toBe("")
  })

  it("its pictures are small, and those of README have 120 KB together", () => {
    const sizes = (text: string) =>
      [...text.matchAll(/pictures\/[\w-]+\.png/g)].map(([path]) => statSync(join(root, "docs", path)).size)
    const all = files.flatMap((file) => sizes(textOf(file)))
    expect(all.length).toBeGreaterThan(4)
    for (const size of all) expect(size).toBeLessThanOrEqual(60_000)
    expect(sizes(textOf("README.md")).reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(120_000)
  })

  it("the client's table has each of its methods", () => {
    const client = createClient({ baseUrl: "https://pay.example.com", apiKey: "svc_test_x" })
    const table = [...textOf("docs/client.md").matchAll(/^\| `(\w+)` +\| (`.*`) +\|$/gm)]
    expect(table.map(([, of, methods]) => [of, methods?.match(/\w+/g)])).toEqual(
      Object.entries(client).map(([of, methods]) => [of, Object.keys(methods)])
    )
  })

  it("every npm script that it names exists", () => {
    const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
    const named = files.flatMap((file) =>
      [...textOf(file).matchAll(/npm (?:run )?([a-z:0-9]+)/g)].map(([, name = ""]) => name)
    )
    expect(named.length).toBeGreaterThan(10)
    for (const name of named.filter((each) => !["ci", "pack", "prune", "packages"].includes(each))) {
      expect(scripts).toHaveProperty(name)
    }
  })
})

/** A command line that has one command, whose option has a bar in its text. */
const help = `
import { Effect, Console } from "effect"
export const commandLine = ([, , command]) => Effect.as(Console.log(command === "serve"
  ? "USAGE\\n\\n$ serve [--port N]\\n\\nDESCRIPTION\\n\\nRuns.\\n\\nOPTIONS\\n\\n  --port N\\n    One of 1|2."
  : "USAGE\\n\\n$ tilld\\n\\nCOMMANDS\\n\\n  serve  Runs."), 0)
`

liveTest(
  "the generated parts are written, and a check fails where one is out of date, and writes nothing",
  function* () {
    const folder = yield* temporaryFolder
    const link = (place: string) => symlinkSync(join(root, place), join(folder, place))
    mkdirSync(join(folder, "src/commands"), { recursive: true })
    for (const place of ["biome.json", "config", "node_modules", "package.json", "src/commands/runCommand.ts"])
      link(place)
    for (const name of readdirSync(join(root, "src"))) if (name !== "commands") link(join("src", name))
    writeFileSync(join(folder, "src/commands/commandLine.ts"), help)
    cpSync(join(root, "docs"), join(folder, "docs"), { recursive: true })
    for (const file of ["docs.mjs", "typescript.mjs", "typescript-hooks.mjs"]) {
      cpSync(join(root, "scripts", file), join(folder, "scripts", file))
    }
    const generate = (...args: ReadonlyArray<string>) => {
      const { status, stderr } = spawnSync(process.execPath, [join(folder, "scripts/docs.mjs"), ...args], {
        encoding: "utf8",
        env: { PATH }
      })
      return { status, stderr }
    }
    const page = (name: string) => join(folder, "docs", name)
    expect(generate()).toEqual({ status: 0, stderr: "" })
    expect(readFileSync(page("commands.md"), "utf8")).toContain("| `--port N` | One of 1\\|2. | most |")
    expect(readFileSync(page("errors.md"), "utf8")).toBe(textOf("docs/errors.md"))
    expect(generate("--check")).toEqual({ status: 0, stderr: "" })
    const old = textOf("docs/errors.md").replace("| 429 |", "| 430 |")
    writeFileSync(page("errors.md"), old)
    expect(generate("--check")).toEqual({ status: 1, stderr: "docs/errors.md is out of date: npm run docs\n" })
    expect(readFileSync(page("errors.md"), "utf8")).toBe(old)
  }
)
