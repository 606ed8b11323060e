import { spawnSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { beforeEach, describe, expect } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { getAddress } from "viem"
import { mnemonicToAccount } from "viem/accounts"
import type { Plan } from "../../src/Collect/Plan.ts"
import { Signed } from "../../src/Collect/Signed.ts"
import { configuration } from "../commands/installation.ts"
import { needs } from "../lib/needs.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { temporaryFolder } from "../lib/store.ts"
import { PATH, root, tilld } from "../lib/tilld.ts"
import { type Dialogue, tilldAtTerminal } from "./atTerminal.ts"
import {
  addressAt,
  customer,
  destination,
  exception,
  otherPhrase,
  phrase,
  planOf,
  refunded,
  secretsOf,
  unsignedPlan
} from "./plans.ts"
import { failing } from "./refusal.ts"
import { sealedProcess } from "./sealedProcess.ts"

needs("python3")

const sealed = sealedProcess()

const toDestination = ["--destination", destination]
const toCustomer = ["--refund-to", customer]
const confirmed = [...toDestination, ...toCustomer]
/** The six characters at the end that each option of a role takes. */
const end = (option: "destination" | "refund", address: string) => [`--${option}-ends`, address.slice(-6)]

/** A folder with a plan, and `tilld sweep sign` there. The seed is on standard input. */
const signing = Effect.fnUntraced(function* (plan: Plan = planOf()) {
  const folder = yield* temporaryFolder
  writeFileSync(join(folder, "plan.json"), JSON.stringify(plan))
  const command = ["sweep", "sign", "plan.json", "-o", "signed.json", "--any-age"]
  const sign = (args: ReadonlyArray<string>, input = `${phrase}\n`) =>
    sealed([...command, ...args], { cwd: folder, input })
  return { folder, command, sign, signed: join(folder, "signed.json") }
})

/** All that a run has left behind. */
const traces = (folder: string, ...texts: ReadonlyArray<string>) =>
  [...texts, ...readdirSync(folder).map((file) => readFileSync(join(folder, file), "utf8"))].join("\n").toLowerCase()

liveTest("a plan is signed by a seed from a file descriptor, for its owner alone, and leaves no secret", function* () {
  const { command, folder, sign, signed } = yield* signing()
  const seeded = [...command, ...confirmed, "--seed-fd", "0"]
  const done = yield* tilld([...seeded, "--json"], { cwd: folder, input: `${phrase}\n` })
  expect(done).toMatchObject({ code: 0 })
  const plan = planOf()
  expect(JSON.parse(done.stdout)).toEqual({
    ...{ file: "signed.json", chain: "base", mode: "test", digest: plan.digest, words: plan.words },
    receivers: [
      {
        ...{ address: destination, role: "collected" },
        totals: [
          { currency: "USDC", decimals: 6, amount: "4000000", count: 2 },
          { currency: "USDT", decimals: 6, amount: "9000000", count: 1 },
          { currency: "ETH", decimals: 18, amount: `${10n ** 18n}`, count: 1 }
        ]
      },
      {
        ...{ address: customer, role: "refund", refunds: refunded },
        totals: [
          { currency: "USDC", decimals: 6, amount: "700000", count: 1 },
          { currency: "ETH", decimals: 18, amount: `${10n ** 18n / 4n}`, count: 1 }
        ]
      }
    ],
    ...{ authorizations: 3, transactions: 5 }
  })
  expect(done.stderr).toContain(`To        ${destination}\n`)
  expect(done.stderr).toContain(plan.words)
  expect(statSync(signed).mode & 0o777).toBe(0o600)
  const found = Schema.decodeUnknownSync(Schema.parseJson(Signed))(readFileSync(signed, "utf8"))
  expect([found.plan, found.authorizations.length]).toEqual([plan, 3])
  expect(readdirSync(folder).sort()).toEqual(["plan.json", "signed.json"])

  const secrets = secretsOf(phrase)
  expect(secrets).toHaveLength(7)
  const left = traces(folder, done.stdout, done.stderr)
  expect(secrets.filter((secret) => left.includes(secret))).toEqual([])

  const byEnds = [...end("destination", destination), ...end("refund", customer)]
  const again = yield* sign([...byEnds, "--seed-fd", "0"])
  expect(again).toMatchObject(failing(2, "signed.json exists already"))
  const before = readFileSync(signed)
  expect((yield* sign([...byEnds, "--seed-fd", "0", "--force"])).code).toBe(0)
  // Signatures follow from the plan: signed twice, nothing can be sent twice.
  expect(readFileSync(signed)).toEqual(before)
})

liveTest("nothing is written where signing is refused, and the reason is said", function* () {
  const { command, folder, sign, signed } = yield* signing()
  const typo = (address: string) => address.replace("E", "e")
  const unset = "--allow has no value: was a variable not set?"
  /** With both receivers confirmed, and the right seed. */
  const refused: ReadonlyArray<readonly [args: ReadonlyArray<string>, code: number, said: string]> = [
    [["--seed-fd", `${2 ** 31}`], 2, "--seed-fd must be 0 to 2147483647"],
    [["--seed-fd", "-1"], 2, "--seed-fd must be 0 to 2147483647"],
    [["--seed-fd", "77"], 1, "File descriptor 77 cannot be read"],
    [[], 1, "There is no terminal to ask at"],
    [["--max-total-fee", "0.001", "--seed-fd", "0"], 1, "or say --max-total-fee 0.001239"],
    [["--allow", customer, "--seed-fd", "0"], 1, `${destination} is not in sweep.allow`],
    [["--allow", typo(destination), "--seed-fd", "0"], 1, "or checksum is wrong"],
    [["--allow", "", "--seed-fd", "0"], 2, unset],
    [["--allow=", "--seed-fd", "0"], 2, unset],
    [["--seed-fd", "0", "--allow"], 2, unset],
    [["--fee-ceiling-gwei", "2.5", "--seed-fd", "0"], 1, "highest fee is 3 gwei for a unit of gas, above 2.5"],
    [["--fee-ceiling-gwei", "-1", "--seed-fd", "0"], 2, "--fee-ceiling-gwei"],
    // A digit more than a gwei has wei: read as wei, it would be ten times as much.
    [["--fee-ceiling-gwei", "2.5000000001", "--seed-fd", "0"], 2, "--fee-ceiling-gwei must be"],
    [["--keystore", "none.json", "--seed-fd", "0"], 1, "none.json cannot be read"]
  ]
  const toRefund = `No --refund-to or --refund-ends is the address whom ${exception} and 1 more refund are sent back to`
  const toCollect =
    "No --destination or --destination-ends is the address where collected money goes: nothing was signed"
  /** What confirms the one does not confirm the other. */
  const unconfirmed: ReadonlyArray<readonly [args: ReadonlyArray<string>, code: number, said: string]> = [
    [[...toDestination, ...end("refund", destination)], 1, toRefund],
    [[...toCustomer, ...end("destination", customer)], 1, toCollect],
    [[...toDestination, ...toDestination], 1, "There is no terminal to ask at"],
    [
      [...toDestination, ...end("refund", customer), "--allow", destination],
      1,
      "give the customer's whole address with --refund-to, from your own note"
    ],
    [["--destination-ends", "abcde"], 2, "--destination-ends must be the last characters of an address, six or more"],
    [["--destination", destination.slice(2)], 2, "--destination must be an address"],
    [["--refund-to", typo(customer)], 1, "or checksum is wrong"],
    [[], 1, "There is no terminal to ask at"]
  ]
  const cases = [
    ...refused.map(([args, code, said]) => ({ args: [...confirmed, ...args], input: phrase, code, said })),
    ...unconfirmed.map(([args, code, said]) => ({ args: [...args, "--seed-fd", "0"], input: phrase, code, said })),
    ...[otherPhrase, ""].map((input, i) => {
      const said = i === 0 ? "The seed is not the plan's" : "There are no words: is the file empty?"
      return { args: [...confirmed, "--seed-fd", "0"], input, code: 1, said }
    })
  ]
  const results = yield* Effect.forEach(cases, ({ args, input }) => sign(args, input), { concurrency: 1 })
  for (const [i, { code, stderr, stdout }] of results.entries()) {
    const { args, said, ...expected } = cases[i] ?? expect.fail()
    expect([code, stdout], args.join(" ")).toEqual([expected.code, ""])
    expect(stderr, args.join(" ")).toContain(said)
    expect(stderr).not.toContain("test junk")
  }
  const seeded = [...confirmed, "--seed-fd", "0"]
  const elsewhere = "0xfb6916095ca1df60bb79ce92ce3ea74c37c5d359"
  const write = (name: string, text: string) => Effect.sync(() => writeFileSync(join(folder, name), text))
  const configured = (allow: string) => write("tilld.toml", `${configuration}[sweep]\nallow = ["${allow}"]\n`)
  const isRefused = (done: Effect.Effect<object>, code: number, said: RegExp) =>
    Effect.map(done, (ended) => expect(ended).toMatchObject({ code, stderr: expect.stringMatching(said) }))
  yield* configured(getAddress(elsewhere))
  yield* isRefused(sign([...seeded, "--config", "tilld.toml"]), 1, new RegExp(`${destination} is not in sweep.allow`))
  yield* configured(elsewhere)
  const mistyped = /sweep\.allow.*an address with its EIP-55 checksum/s
  yield* isRefused(sign([...seeded, "--config", "tilld.toml"]), 2, mistyped)
  const env = { TILLD_CONFIG: "tilld.toml" }
  yield* isRefused(sealed([...command, ...seeded], { cwd: folder, input: phrase, env }), 2, mistyped)
  const aged = sealed([...command.slice(0, -1), ...seeded], { cwd: folder, input: phrase })
  yield* isRefused(aged, 1, /as of 2026-09-21T.*, and the clock of this/)
  yield* write("plan.json", JSON.stringify({ ...planOf(), destination: customer }))
  yield* isRefused(sign(seeded), 1, /The plan was changed after it was made/)
  yield* write("plan.json", JSON.stringify({ ...planOf(), more: 1 }))
  yield* isRefused(sign(seeded), 1, /plan.json is not a plan of this version of tilld: more/)
  expect(existsSync(signed)).toBe(false)
})

describe("without any network", () => {
  const isPermitted = spawnSync("unshare", ["-rn", "true"]).status === 0
  beforeEach(({ skip }) => skip(!isPermitted, "needs unshare -rn, which this machine does not permit"))

  liveTest("a plan is signed, with no socket to reach anything by", function* () {
    const { folder, command, signed } = yield* signing()
    const isolated = (program: ReadonlyArray<string>) =>
      spawnSync("unshare", ["-rn", process.execPath, ...program], {
        cwd: folder,
        input: phrase,
        encoding: "utf8",
        env: { PATH }
      })
    const networks = isolated(["-p", "Object.keys(os.networkInterfaces()).length"])
    expect(networks).toMatchObject({ status: 0, stdout: "0\n" })
    const { status, stderr } = isolated([join(root, "dist/tilld.js"), ...command, ...confirmed, "--seed-fd", "0"])
    expect(status, stderr).toBe(0)
    expect(existsSync(signed)).toBe(true)
  })
})

liveTest("words and answers are asked at the terminal, which does not show the words", function* () {
  const { folder, command, signed } = yield* signing()
  let asked = ""
  const dialogue: Dialogue = [
    ["The address where collected money goes", "abcdef"],
    ["from your own note", destination.slice(-6).toLowerCase()],
    [
      `The address whom ${exception} and 1 more refund are sent back to`,
      (before) => {
        asked = before
        return customer
      }
    ],
    // With a mistake, which is taken back.
    ["The words of the seed (not shown): ", `${phrase.replace("junk", "jumk")}\u007f\u007fnk`],
    ["The passphrase of the words (not shown; empty if they have none): ", ""]
  ]
  const { code, shown, stderr, stdout } = yield* tilldAtTerminal(folder, command, dialogue)
  expect({ code, stderr: stderr.split("\n").at(-2) }).toEqual({ code: 0, stderr: "Left out  1 balance" })
  expect(stdout).toContain("Signed signed.json: 3 authorizations and 5 transactions")
  expect(existsSync(signed)).toBe(true)
  // No question says its answer.
  expect(asked.toLowerCase()).not.toContain(customer.slice(-6).toLowerCase())
  expect(asked).not.toContain(destination.slice(2))
  // What is typed of a destination is shown; of a seed nothing is.
  expect(shown).toContain("abcdef")
  expect(traces(folder, shown)).not.toMatch(/test test|junk/)
})

liveTest("Ctrl-C and three wrong answers end it, and nothing is signed", function* () {
  const { folder, command, signed } = yield* signing(
    planOf({ moves: unsignedPlan().moves.slice(0, 2), tokens: unsignedPlan().tokens.slice(0, 1) })
  )
  const ask = "The address where collected money goes"
  const wrong = yield* tilldAtTerminal(folder, command, [
    [ask, ""],
    ["neither an address nor six or more of its last characters, 2 of 3 answers are left", "000000"],
    ["not the plan's, 1 of 3 answers", destination.slice(-5)]
  ])
  expect(wrong).toMatchObject(failing(1, `not the address where collected money goes by the plan: nothing was signed`))
  const stopped = yield* tilldAtTerminal(
    folder,
    [...command, ...toDestination],
    [["The words of the seed", "test\u0003"]]
  )
  expect(stopped).toMatchObject(failing(1, "Stopped: nothing was done"))
  const echoed = yield* tilldAtTerminal(folder, [...command, ...toDestination, "--seed-fd", "0"], [])
  expect(echoed).toMatchObject(failing(1, "is a terminal, which would show what is typed"))
  expect(existsSync(signed)).toBe(false)
})

liveTest("a wallet is made at the terminal alone, asked again, and opens from its keystore", function* () {
  const folder = yield* temporaryFolder
  /** The words that were shown last, by their numbers. */
  const wordsOf = (shown: string) => {
    const last = shown.slice(shown.lastIndexOf("   1 "))
    return Array.from({ length: 24 }, (_, i) => new RegExp(`(?:^|\\s)${i + 1} +([a-z]+)`).exec(last)?.[1] ?? "")
  }
  let words: ReadonlyArray<string> = []
  const enter = [
    "Press Enter",
    (shown: string) => {
      words = wordsOf(shown)
      return ""
    }
  ] as const
  const answer = ["Word ", (shown: string) => words[Number(/Word (\d+): $/.exec(shown)?.[1]) - 1] ?? ""] as const
  const password = "correct horse battery"
  const made = yield* tilldAtTerminal(
    folder,
    ["wallet", "new", "--dice", "--keystore", "seed.json"],
    [
      ["What your dice show", "6142 3355"],
      enter,
      // One wrong answer: the words are shown again, and three others asked.
      ["Word ", "zoo zoo"],
      answer,
      answer,
      enter,
      answer,
      answer,
      answer,
      ["A password for the keystore", "short"],
      ["That is shorter. A password for the keystore", password],
      ["The same again", `${password}.`],
      ["The two differ. A password for the keystore", password],
      ["The same again: ", password]
    ]
  )
  expect(made).toMatchObject({ code: 0 })
  expect(words).toHaveLength(24)
  expect(made.shown).toContain("One of these words was another")
  expect(made.shown).not.toMatch(/6142|horse/)
  // Shown, and cleared again with what was scrolled away.
  expect(made.shown.split("\u001b[3J").length).toBeGreaterThan(4)
  const phrase = words.join(" ")
  const account = mnemonicToAccount(phrase)
  expect(made.stdout).toMatch(/^xpub\w{107}\n$/)
  expect(made.stderr).toContain(account.address)
  expect(statSync(join(folder, "seed.json")).mode & 0o777).toBe(0o600)
  const left = traces(folder)
  expect([words.slice(0, 2).join(" "), ...secretsOf(phrase)].filter((secret) => left.includes(secret))).toEqual([])

  const opened = yield* sealed(["wallet", "xpub", "--keystore", "seed.json", "--seed-fd", "0", "--json"], {
    cwd: folder,
    input: password
  })
  expect(JSON.parse(opened.stdout)).toMatchObject({
    xpub: made.stdout.trim(),
    addresses: [{ address: account.address }, {}, {}]
  })
  const wrong = yield* sealed(["wallet", "xpub", "--keystore", "seed.json", "--seed-fd", "0"], {
    cwd: folder,
    input: "wrong"
  })
  expect(wrong).toMatchObject(failing(1, "The keystore does not open"))
  // Everything hidden is asked before the key is derived, meanwhile the terminal would show it.
  const hidden = yield* tilldAtTerminal(
    folder,
    ["wallet", "xpub", "--keystore", "seed.json"],
    [
      ["The keystore's password", "wrong"],
      ["The passphrase", "not to be seen"]
    ]
  )
  expect(hidden).toMatchObject(failing(1, "The keystore does not open"))
  expect(hidden.shown).toContain("The passphrase of the words (not shown")
  expect(hidden.shown).not.toContain("seen")
  // The screen is cleared where it ends while the words are on it.
  const cut = yield* tilldAtTerminal(folder, ["wallet", "new"], [["Press Enter", "\u0003"]])
  expect(cut).toMatchObject(failing(1, "tilld: interrupted before its end"))
  expect(cut.shown.trim().endsWith("\u001b[2J\u001b[3J\u001b[H")).toBe(true)
  const kept = yield* tilldAtTerminal(folder, ["wallet", "new", "--keystore", "seed.json"], [])
  expect(kept).toMatchObject(failing(2, "seed.json exists already"))
})

liveTest("a wallet is not made where only a pipe is", function* () {
  const made = yield* tilld(["wallet", "new"], { input: "\n\n\n" })
  expect(made).toMatchObject(failing(1, "There is no terminal to ask at"))
})

liveTest("the extended public key and the sponsor of a wallet are shown", function* () {
  const folder = yield* temporaryFolder
  const shown = yield* sealed(["wallet", "xpub", "--seed-fd", "0"], { cwd: folder, input: phrase })
  expect(shown).toMatchObject({
    code: 0,
    stderr: expect.stringContaining(`${addressAt(0, 1)}  m/44'/60'/0'/1/0 (sponsor)`)
  })
  const key = join(folder, "key")
  writeFileSync(key, shown.stdout)
  const sponsor = ["wallet", "sponsor", "--xpub", key]
  expect(yield* tilld(sponsor)).toMatchObject({ code: 0, stdout: `${addressAt(0, 1)}\n` })
  expect(yield* tilld([...sponsor, "--mode", "live"])).toMatchObject({ code: 2 })
  writeFileSync(key, "xpub1")
  expect(yield* tilld(sponsor)).toMatchObject(failing(2, "is not the extended public key"))
})
