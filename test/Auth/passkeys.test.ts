import { expect, it } from "@effect/vitest"
import { relyingPartyId } from "../../src/Auth/passkeys.ts"

it("passkeys are for the name of a host, over https or on this machine", () => {
  expect(relyingPartyId("https://pay.example.com")).toBe("pay.example.com")
  expect(relyingPartyId("https://pay.example.com:8443/tilld")).toBe("pay.example.com")
  expect(relyingPartyId("http://localhost:8080")).toBe("localhost")
  for (const url of ["http://pay.example.com", "https://192.0.2.1", "http://127.0.0.1:8080", "https://[::1]:8080"]) {
    expect(relyingPartyId(url), url).toBeUndefined()
  }
})
