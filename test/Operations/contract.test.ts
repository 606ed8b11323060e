/** What holds for every operation, by each way to it: generated from one valid request of each. */
import { writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { revokeKey } from "../../src/Auth/keyOperations.ts"
import { allOperations } from "../../src/Control/operations.ts"
import { ask } from "../../src/commands/askDaemon.ts"
import { fieldsOf } from "../../src/Operations/operation.ts"
import {
  accesses,
  askSample,
  besideDaemon,
  exchange,
  logged,
  nameOf,
  requestOf,
  type Sample,
  samples
} from "../Control/world.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { testSettings, testXpub } from "../lib/settings.ts"
import { temporaryDatabase } from "../lib/store.ts"
import { tilld } from "../lib/tilld.ts"

const patternOf = (value: unknown) => (value instanceof RegExp ? expect.stringMatching(value) : value)

const installation = Effect.map(temporaryDatabase, (path) =>
  testSettings(path, { alerts: { url: "http://127.0.0.1:1/" } })
)

/** Runs `askFor` for each sample; each act leaves its row, by `via` and `who`, and a request that reads leaves none. */
const leavesRows = <E, R>(by: object, askFor: (sample: Sample) => Effect.Effect<unknown, E, R>) =>
  Effect.gen(function* () {
    for (const sample of samples) {
      const name = nameOf(sample)
      const before = yield* logged
      yield* askFor(sample)
      const added = (yield* logged).slice(0, -before.length || undefined)
      if (sample.act === undefined) expect(added, name).toEqual([])
      else {
        expect(added, name).toMatchObject([{ ...by, act: sample.act }])
        const detail = Object.entries(sample.detail ?? {}).map(([field, value]) => [field, patternOf(value)])
        expect(JSON.parse(added[0]?.detail ?? ""), name).toEqual(Object.fromEntries(detail))
      }
    }
    const all = JSON.stringify(yield* logged)
    expect(all).not.toMatch(/whsec_|svc_|xpub/)
    expect(all).not.toContain(testXpub.slice(0, 20))
  })

it("every operation has a sample, with its audit row if it administers", () => {
  expect(samples.map(nameOf).toSorted()).toEqual(allOperations.map(({ name }) => name).toSorted())
  for (const sample of samples) {
    expect(sample.act === undefined ? "read" : "administer", nameOf(sample)).toBe(accesses.get(nameOf(sample)))
  }
})

liveTest("through the socket every act leaves a row; refused acts and requests that read leave none", function* () {
  const settings = yield* installation
  yield* besideDaemon(settings, function* () {
    const refused = yield* Effect.flip(ask(settings, revokeKey, { id: "key_none" }))
    expect([refused._tag, refused.message]).toEqual(["NotFound", "There is no key key_none: tilld keys list names all"])
    expect(yield* logged).toEqual([])
    yield* leavesRows({ via: "socket", who: "alice as root" }, (sample) => askSample(settings, sample))
  })
})

/** Operations that commands ask for as a part of what they do. */
const withoutCommand = [
  ...["tokens", "sweep owed", "sweep begin", "sweep account"],
  ...["addresses received", "sweep read", "sweep record"]
]

/** The command line with this input. An extended public key is in a file. */
const commandLineOf = ({ input, operation }: Sample, folder: string): ReadonlyArray<string> => {
  const given = fieldsOf(operation.fields).flatMap(({ flag, name }) => {
    const value = (input as Readonly<Record<string, unknown>>)[name]
    if (flag === undefined || value === undefined) return []
    const option = `--${flag.name ?? name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
    return [value].flat().map((each) => {
      const word = Object.entries(flag.words ?? {}).find(([, stands]) => stands === each)?.[0] ?? String(each)
      if (flag.isFile) writeFileSync(join(folder, name), word)
      const text = flag.isFile ? join(folder, name) : word
      return flag.isArgument ? [text] : [option, text]
    })
  })
  // A command may be for two operations: the options say which one.
  const words = operation.name.replace(/ range$|(?<=shop) show$/, "").split(" ")
  // Arguments come before the options.
  return [...words, ...given.toSorted((one, other) => one.length - other.length).flat(), "--json"]
}

liveTest("every command prints what its operation gives, and leaves the same row", function* () {
  const settings = yield* installation
  const folder = dirname(settings.database.path)
  yield* besideDaemon(settings, function* () {
    const missing: Array<string> = []
    yield* leavesRows({ via: "socket" }, (sample) =>
      Effect.gen(function* () {
        const args = commandLineOf(sample, folder)
        const ended = yield* tilld(args, { env: { TILLD_SOCKET: `${settings.database.path}.sock` } })
        if (ended.code === 2) {
          missing.push(nameOf(sample))
          expect(ended.stderr).toMatch(/has no command/)
          return yield* askSample(settings, sample)
        }
        // Nothing listens where the test alert goes. What is wrong is also of this machine: its disk.
        const codes = { "alerts test": [1], status: [0, 1] }[nameOf(sample)] ?? [0]
        expect(codes, `${args.join(" ")}: ${ended.stderr}`).toContain(ended.code)
        const printed = JSON.parse(ended.stdout)
        const isOutput = Schema.is(Schema.encodedSchema(sample.operation.output))(printed)
        // A long range is rescanned in parts, and the command prints their sum.
        expect(isOutput, args.join(" ")).toBe(nameOf(sample) !== "rescan")
        if (sample.act !== undefined) return
        const given = yield* askSample(settings, sample)
        // What is wrong with this machine is seen anew by each status, until a round of the daemon has seen it.
        const steady = (output: object) => ({ ...output, ...(nameOf(sample) === "status" ? { conditions: [] } : {}) })
        const asked = yield* Schema.encode(sample.operation.output)(given)
        expect(steady(printed), args.join(" ")).toEqual(steady(asked))
      })
    )
    expect(missing).toEqual(withoutCommand)
  })
})

liveTest(
  "an input with an unknown field, a field of the wrong type or without a required one is refused",
  function* () {
    const settings = yield* installation
    yield* besideDaemon(settings, function* () {
      const problemsOf = (name: string, input: object) =>
        Effect.map(exchange(`${settings.database.path}.sock`, requestOf(name, input)), (answer) => {
          expect(answer, `${name} ${JSON.stringify(input)}`).toMatch(/^HTTP\/1.1 400 /)
          const { error } = JSON.parse(answer.slice(answer.indexOf("\r\n\r\n")))
          return error.details.map(({ message, path }: Record<string, string>) => [path, message])
        })
      for (const { input, operation } of samples) {
        const { fields, name } = operation
        expect(yield* problemsOf(name, { ...input, colour: "red" }), name).toContainEqual(["colour", "is not known"])
        for (const field of fieldsOf(fields)) {
          const wrong = yield* problemsOf(name, { ...input, [field.name]: { a: "whsec_secret" } })
          expect(JSON.stringify(wrong), `${name} ${field.name}`).not.toContain("whsec_secret")
          expect(wrong, `${name} ${field.name}`).toEqual([[field.name, expect.any(String)]])
          if (field.isOptional) continue
          const { [field.name as never]: _, ...others } = input
          expect(yield* problemsOf(name, others), name).toEqual([[field.name, "is required"]])
        }
      }
      expect(yield* logged).toEqual([])
    })
  }
)

liveTest("a request of an account that does not exist is refused, and leaves no row", function* () {
  const settings = yield* installation
  yield* besideDaemon(settings, function* () {
    const account = `acct_${"x".repeat(22)}`
    const ofAccount = samples.filter(({ operation }) => "account" in operation.fields)
    expect(ofAccount.length).toBeGreaterThan(5)
    for (const sample of ofAccount) {
      const refused = yield* Effect.either(askSample(settings, { ...sample, input: { ...sample.input, account } }))
      const left = { _tag: "UnknownAccount", message: expect.stringContaining(account) }
      expect(refused, nameOf(sample)).toMatchObject({ _tag: "Left", left })
    }
    expect(yield* logged).toEqual([])
  })
})
