import { expect, it } from "@effect/vitest"
import { Schema } from "effect"
import { Accent, Contact, FrameOrigin, LogoFile, ShopName, Website } from "../../src/Domain/Shop.ts"

const accepts = (schema: Schema.Schema<string>, texts: ReadonlyArray<string>) => texts.filter(Schema.is(schema))

it("a frame origin is an https site, or one of this machine, and nothing that could extend a policy", () => {
  const good = ["https://shop.example", "https://shop.example:8443", "http://localhost:3000", "http://127.0.0.1:3000"]
  expect(accepts(FrameOrigin, good)).toEqual(good)
  const beyond = "https://shop.example/ https://shop.example/path https://SHOP.example https://shop.example:443".split(
    " "
  )
  const bad = [
    "*",
    "https:",
    "https://*.shop.example",
    "http://shop.example",
    "https://user@shop.example",
    ...beyond,
    "https://shop.example; script-src *",
    "https://shop.example, https://b.example",
    "https://shop.example https://b.example",
    ..."javascript:alert(1) data:text/html,x null 'self' ".split(" ")
  ]
  expect(accepts(FrameOrigin, bad)).toEqual([])
})

it("a website is an https page, or one of this machine, without user info", () => {
  const good = ["https://shop.example", "https://shop.example/help?a=b#c", "http://localhost:3000/x"]
  expect(accepts(Website, good)).toEqual(good)
  const bad = "http://shop.example https://ann:secret@shop.example javascript:alert(1) /help ".split(" ")
  expect(accepts(Website, [...bad, "https://a b", `https://shop.example/${"x".repeat(500)}`])).toEqual([])
})

it("a contact is an e-mail address or a website, and a URL of no other scheme", () => {
  const good = ["help@shop.example", "jörg+x@shop.example", "https://shop.example/help", "http://localhost:3000/x"]
  expect(accepts(Contact, good)).toEqual(good)
  const schemes = ["ssh://git@shop.example", "intent://scan@shop.example", "file://x@shop", "mailto:a@shop.example"]
  const bad = [...schemes, "javascript:alert(1)//@shop", "tel:123", "a@b@c", "", "http://shop.example"]
  expect(accepts(Contact, bad)).toEqual([])
})

it("a logo is the name of an image, and no path", () => {
  const good = ["shop.png", "Shop-2.svg", "a.b.webp", "x.JPG", "x.jpeg"]
  expect(accepts(LogoFile, good)).toEqual(good)
  const bad = "../shop.png a/b.png a\\b.png .png .hidden.png a..b.png shop shop.html a.png\0 ".split(" ")
  expect(accepts(LogoFile, bad)).toEqual([])
})

it("an accent is a colour of six hex digits, a name is printable and short", () => {
  expect(accepts(Accent, ["#1f5fd1", "#FFF", "red", "#1f5fd1;", "1f5fd1", "#1F5FD1"])).toEqual(["#1f5fd1"])
  expect(accepts(ShopName, ["Corner shop", "Bäckerei 🥐", "", "a\nb", "x".repeat(61)])).toEqual([
    "Corner shop",
    "Bäckerei 🥐"
  ])
})
