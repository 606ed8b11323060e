import { expect, it } from "@effect/vitest"
import { Either, Schema } from "effect"
import { Assertion, relyingPartyId } from "../../src/Auth/passkeys.ts"

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

it("what a browser sends of a passkey is read, without what is not used", () => {
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
])("%s is not the answer of a passkey", (_, sent) => {
  const text = typeof sent === "string" ? sent : JSON.stringify(sent)
  expect(Either.isLeft(Schema.decodeEither(Assertion)(text))).toBe(true)
})
