import { createHash, randomBytes } from "node:crypto"
import { expect, it } from "@effect/vitest"
import { isoCBOR } from "@simplewebauthn/server/helpers"
import { Clock, Effect, Either, Exit, Schema } from "effect"
import { makeLink } from "../../src/Auth/loginLinks.ts"
import { Assertion, addPasskey, Challenges, type RelyingParty, relyingPartyId } from "../../src/Auth/passkeys.ts"
import { begin } from "../../src/Auth/sessions.ts"
import { newSessionId } from "../../src/Domain/Ids.ts"
import { scopedTest } from "../lib/scopedTest.ts"
import { execute, inTransaction, rows } from "../lib/store.ts"
import { portalStore, shop } from "../Portal/room.ts"

const test = scopedTest(portalStore())

it("passkeys are for the name of a host, over https or on this machine", () => {
  expect(relyingPartyId("https://pay.example.com")).toBe("pay.example.com")
  expect(relyingPartyId("https://pay.example.com:8443/tilld")).toBe("pay.example.com")
  expect(relyingPartyId("http://localhost:8080")).toBe("localhost")
  for (const url of ["http://pay.example.com", "https://192.0.2.1", "http://127.0.0.1:8080", "https://[::1]:8080"]) {
    expect(relyingPartyId(url), url).toBeUndefined()
  }
})

const answer = {
  ...{ id: "aWQ", rawId: "aWQ", type: "public-key", clientExtensionResults: { credProps: { rk: true } } },
  authenticatorAttachment: "platform",
  response: { clientDataJSON: "e30", authenticatorData: "AAAA", signature: "AAAA", userHandle: "cGVyXzE" }
}

it("a passkey's response is parsed, without unused fields", () => {
  expect(Schema.decodeSync(Assertion)(JSON.stringify(answer))).toEqual({
    ...{ id: "aWQ", rawId: "aWQ", type: "public-key" },
    response: { clientDataJSON: "e30", authenticatorData: "AAAA", signature: "AAAA" }
  })
})

const { response } = answer
it.each([
  ["no JSON", "x"],
  ["null", "null"],
  ["an empty object", "{}"],
  ["a number for an id", { ...answer, id: 1 }],
  ["an id that is not base64url", { ...answer, id: "a+b/" }],
  ["an id that is too long", { ...answer, id: "a".repeat(1_401) }],
  ["another type", { ...answer, type: "password" }],
  ["no response", { ...answer, response: null }],
  ["a signature that is an object", { ...answer, response: { ...response, signature: {} } }],
  ["no signature", { ...answer, response: { clientDataJSON: "e30", authenticatorData: "AAAA" } }],
  ["a new passkey", { ...answer, response: { clientDataJSON: "e30", attestationObject: "AAAA" } }]
])("%s is not the response of a passkey", (_, sent) => {
  const text = typeof sent === "string" ? sent : JSON.stringify(sent)
  expect(Either.isLeft(Schema.decodeEither(Assertion)(text))).toBe(true)
})

const party: RelyingParty = { id: "pay.example.com", origin: "https://pay.example.com", challenges: new Challenges() }

/** A key of this many bytes, 400 or more: with a field that no device writes. */
const publicKey = (bytes: number) => {
  const encoded = (more: number) =>
    isoCBOR.encode(
      new Map<number, number | Uint8Array>([
        [1, 2],
        [3, -7],
        [-1, 1],
        [-2, randomBytes(32)],
        [-3, randomBytes(32)],
        [-70_000, new Uint8Array(more)]
      ])
    )
  return encoded(bytes - (encoded(300).length - 300))
}

/** What a program sends in place of a browser: the id in `authData` is one, that beside it another. */
const registration = (challenge: string, id: Uint8Array, key: Uint8Array) => {
  const length = Buffer.alloc(2)
  length.writeUInt16BE(id.length)
  const rpIdHash = createHash("sha256").update(party.id).digest()
  const flags = Uint8Array.of(0x45)
  const authData = Buffer.concat([rpIdHash, flags, Buffer.alloc(4), Buffer.alloc(16), length, id, key])
  const attestation = new Map<string, unknown>([
    ["fmt", "none"],
    ["attStmt", new Map()],
    ["authData", new Uint8Array(authData)]
  ])
  const client = { type: "webauthn.create", challenge, origin: party.origin }
  return JSON.stringify({
    ...{ id: "aWQ", rawId: "aWQ", type: "public-key" },
    response: {
      clientDataJSON: Buffer.from(JSON.stringify(client)).toString("base64url"),
      attestationObject: Buffer.from(isoCBOR.encode(attestation as never)).toString("base64url")
    }
  })
}

/** A person with a session, who creates passkeys with an id and a key of the given sizes. */
const maker = Effect.gen(function* () {
  const { person } = yield* makeLink({ name: "Ann", role: "viewer", account: shop })
  const visitor = { userAgent: "a", address: "192.0.2.1", network: "192.0.2.1", secret: undefined }
  const { session } = yield* inTransaction(begin(person, visitor, newSessionId(), Effect.succeed(undefined)))
  return (id: number, key: number) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const text = registration(party.challenges.issue(session.id, now), randomBytes(id), publicKey(key))
      return Effect.either(addPasskey(party, session.id, { person, name: "phone", text, address: "192.0.2.1" }))
    })
})

test("a passkey whose key or id is longer than that of any device is refused", function* () {
  const make = yield* maker
  for (const [id, key] of [
    [16, 2_049],
    [16, 12_000],
    [1_051, 400],
    [8_000, 400]
  ] as const) {
    expect(yield* make(id, key), `${id} ${key}`).toMatchObject({ left: { _tag: "PasskeyRefused" } })
  }
  expect(yield* make(1_050, 400)).toMatchObject({ _tag: "Right" })
  expect(yield* make(16, 2_048)).toMatchObject({ _tag: "Right" })
  const kept = "SELECT octet_length(id) AS id, octet_length(public_key) AS key FROM passkeys ORDER BY key"
  expect(yield* rows(kept)).toEqual([
    { id: 1_400, key: 400 },
    { id: 22, key: 2_048 }
  ])
  expect(Exit.isFailure(yield* Effect.exit(execute("UPDATE passkeys SET public_key = zeroblob(2049)")))).toBe(true)
})

test("a person has twenty passkeys, and none beyond the account's quota", function* () {
  const make = yield* maker
  yield* execute("UPDATE accounts SET quota_bytes = 20000 WHERE id = 'shop'")
  const made: Array<string> = []
  for (let n = 0; n < 20; n++) made.push((yield* make(16, 2_000))._tag)
  // Each takes a page and some more.
  const kept = made.filter((tag) => tag === "Right").length
  expect(kept).toBeGreaterThan(3)
  expect(kept).toBeLessThan(6)
  expect(yield* make(16, 400)).toMatchObject({ left: { _tag: "QuotaExceeded" } })
  yield* execute("UPDATE accounts SET quota_bytes = NULL WHERE id = 'shop'")
  for (let n = kept; n < 20; n++) expect(yield* make(16, 400)).toMatchObject({ _tag: "Right" })
  expect(yield* make(16, 400)).toMatchObject({ left: { _tag: "PasskeyRefused" } })
  expect(yield* rows("SELECT count(*) AS count FROM passkeys")).toEqual([{ count: 20 }])
})
