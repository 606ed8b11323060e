import { expect, it } from "@effect/vitest"
import { Duration, Effect, Either } from "effect"
import { changeAccount, createAccount } from "../../src/Auth/accountOperations.ts"
import { changeKey, createKey, listKeys, makeLoginLink, rollKey } from "../../src/Auth/keyOperations.ts"
import { changeShop } from "../../src/Auth/shopOperations.ts"
import { claimTransaction, rescanBlocks } from "../../src/Chains/repairOperations.ts"
import { answerTo } from "../../src/Control/operationAnswer.ts"
import { decoded } from "../../src/commands/operationCommand.ts"
import { UsageError } from "../../src/commands/options.ts"
import {
  type AnyOperation,
  decodeForm,
  decodeInput,
  fieldsOf,
  jsonOf,
  jsonOfQuery
} from "../../src/Operations/operation.ts"
import { jumpAddresses } from "../../src/Payments/addresses/addressOperations.ts"
import { changeEndpoint } from "../../src/Webhooks/endpointOperations.ts"
import { rotateSecret } from "../../src/Webhooks/secretOperations.ts"

const key = { mode: "test", name: "shop" }
const network = { chain: "base", mode: "test" }

/** An operation, a valid input, one invalid field, and the message that refuses it. */
const wrong: ReadonlyArray<readonly [AnyOperation, object, field: string, text: string, words: string]> = [
  [createKey, key, "mode", "prod", "must be live or test"],
  [createKey, key, "name", "\u0007", "must be 1 to 100 printable characters"],
  [createKey, key, "name", "x".repeat(101), "must be 1 to 100 printable characters"],
  [createKey, key, "account", "../x", "must be an account's id, as tilld accounts list shows it"],
  [createKey, key, "expires", "0s", "must be a duration such as 24h, above zero and at most 3650 days"],
  [createKey, key, "expires", "soon", "must be a duration such as 24h, above zero and at most 3650 days"],
  [createKey, key, "perMinute", "0", "must be a whole number from 1 to 1000000"],
  [createKey, key, "perHour", "1.5", "must be a whole number from 1 to 100000000"],
  [createKey, key, "id", "key_1", "must be the id of a new key, key_ and 22 random characters, or absent"],
  [listKeys, {}, "limit", "1001", "must be a whole number from 1 to 1000"],
  [rollKey, { id: "key_1" }, "overlap", "31d", "must be a duration such as 24h, at most 30 days"],
  [rotateSecret, { mode: "test" }, "overlap", "-1h", "must be a duration such as 24h, at most 30 days"],
  [makeLoginLink, { name: "Ada" }, "account", "no account", "must be an account's id, as tilld accounts list shows it"],
  [makeLoginLink, { name: "Ada" }, "role", "boss", "must be operator, admin or viewer"],
  [changeAccount, { id: "default" }, "quota", "many", "must be a size such as 500MB or 5GB, at least 1MB, or none"],
  [
    createAccount,
    { name: "Shop" },
    "liveXpub",
    "x",
    "must be the extended public key (xpub…) of an account, m/44'/60'/n'"
  ],
  [changeShop, {}, "accent", "red", "must be a colour such as #1f5fd1"],
  [changeEndpoint, { id: "wh_1" }, "secret", "short", "must be whsec_ followed by 16 to 256 visible characters"],
  [rescanBlocks, network, "from", "-1", "must be the number of a block"],
  [claimTransaction, network, "txHash", "0x12", "must be a transaction's hash: 0x and 64 hexadecimal digits"],
  [jumpAddresses, {}, "by", "50001", "must be 1 to 50000"]
]

const cases = wrong.map(([operation, right, field, text, words]) => ({
  ...{ of: operation.name, given: text.slice(0, 20), operation, right, field, text, words }
}))

it.effect.each(cases)(
  "$of: $field $given is refused with the same words as JSON, form, query, socket and command line",
  (one) =>
    Effect.gen(function* () {
      const { field, operation, right, text, words } = one
      const taken = fieldsOf(operation.fields).find(({ name }) => name === field)
      const json = { ...right, [field]: taken && jsonOf(taken, text) }
      const byJson = decodeInput(operation, json)
      expect(byJson).toEqual(Either.left([{ path: field, message: words }]))
      const others = Object.fromEntries(Object.entries(right).filter(([name]) => name !== field))
      expect(decodeForm(operation, new URLSearchParams({ [field]: text }), [field], others)).toEqual(byJson)
      const query = new URLSearchParams({ ...others, [field]: text })
      expect(decodeInput(operation, jsonOfQuery(operation.fields, query))).toEqual(byJson)
      const answer = yield* answerTo(operation, json, { via: "socket", who: "alice" })
      expect(answer).toMatchObject({ status: 400, body: { error: { code: "VALIDATION_ERROR" } } })
      expect(answer.body).toHaveProperty("error.details", [{ path: field, message: words }])
      const refused = yield* Effect.flip(decoded(operation, json))
      expect(refused).toBeInstanceOf(UsageError)
      expect(refused.message).toContain(words)
    })
)

it("of many problems the first twenty are listed, and a list of thousands is refused as a whole", () => {
  const withItems = (count: number) => ({ ...key, ips: Array.from({ length: count }, () => "x") })
  const refused = Either.getOrThrow(Either.flip(decodeInput(createKey, withItems(90))))
  expect(refused).toHaveLength(21)
  expect(refused.at(-1)).toEqual({ path: "", message: "has 70 problems more" })
  expect(decodeInput(createKey, withItems(1_001))).toEqual(
    Either.left([{ path: "ips", message: "must have 1000 items at most" }])
  )
  const fields = Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`x${i}`, 1]))
  expect(decodeInput(createKey, fields)).toEqual(Either.left([{ path: "", message: "must have 100 fields at most" }]))
})

it("of a query with thousands of names no more than an input may have are read", () => {
  let read = 0
  const query = new URLSearchParams(Array.from({ length: 16_000 }, (_, i) => [`x${i}`, ""]))
  const entries = query.entries()
  const counted = function* () {
    for (const entry of entries) {
      read += 1
      yield entry
    }
  }
  const lookedThrough = () => {
    throw new Error("each name is looked for among all")
  }
  Object.defineProperties(query, { [Symbol.iterator]: { value: counted }, getAll: { value: lookedThrough } })
  expect(Object.keys(jsonOfQuery(createKey.fields, query))).toHaveLength(101)
  expect(read).toBe(102)
})

it("a duration may be as long as the words of its refusal say, and zero where these do not say otherwise", () => {
  const longest: ReadonlyArray<readonly [AnyOperation, object, field: string, text: string, hours: number]> = [
    [rollKey, { id: "key_1" }, "overlap", "30d", 720],
    [rollKey, { id: "key_1" }, "overlap", "0s", 0],
    [rotateSecret, { mode: "test" }, "overlap", "30d", 720],
    [changeEndpoint, { id: "wh_1", secret: `whsec_${"s".repeat(16)}` }, "overlap", "30d", 720],
    [createKey, key, "expires", "3650d", 87_600]
  ]
  for (const [operation, input, field, text, hours] of longest) {
    expect(decodeInput(operation, { ...input, [field]: text }), operation.name).toMatchObject({
      right: { [field]: Duration.hours(hours) }
    })
  }
})

it("a rule of the whole input is refused once its fields are right", () => {
  expect(decodeInput(changeKey, { id: "key_1" })).toEqual(
    Either.left([{ path: "", message: "Say what to change: the addresses, or the limit of a minute or an hour" }])
  )
})

it("a form's empty texts are absent, null or an empty list, and problems name its items", () => {
  const form = new URLSearchParams({ ips: "", perMinute: "", perHour: "5" })
  expect(decodeForm(changeKey, form, ["ips", "perMinute", "perHour"], { id: "key_1" })).toEqual(
    Either.right({ id: "key_1", ips: [], perMinute: null, perHour: 5 })
  )
  form.set("ips", "192.0.2.1 nowhere")
  expect(decodeForm(changeKey, form, ["ips"], { id: "key_1" })).toMatchObject({
    left: [{ path: "ips", message: expect.stringMatching(/^nowhere: must be an IP address/) }]
  })
})
