import { expect, it } from "@effect/vitest"
import { Context, Effect, Either, Layer } from "effect"
import * as fc from "fast-check"
import ipaddr from "ipaddr.js"
import { isMetadata, isPublic, OwnAddresses, TargetGuard } from "../../../src/Webhooks/transport/TargetGuard.ts"
import { addresses, stated, toBytes } from "../../lib/registries.ts"
import { testSettingsLayer, testWebhooks } from "../../lib/settings.ts"
import { stubResolver } from "../../lib/webhooks.ts"

const names = {
  "shop.example": ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946"],
  "inside.example": ["10.0.0.7"],
  "mixed.example": ["93.184.216.34", "127.0.0.1"],
  "zone.example": ["fe80::1%eth0"],
  "cloud.example": ["168.63.129.16"]
}

const guarded = (allowTargets: ReadonlyArray<string> = [], denyTargets: ReadonlyArray<string> = []) =>
  TargetGuard.layer.pipe(
    Layer.provide(stubResolver(names)),
    Layer.provide(testSettingsLayer("", { webhooks: testWebhooks({ allowTargets, denyTargets }) }))
  )

/** What becomes of a URL at registration and at each dial: its addresses, or the reason. */
const judge = (url: string) =>
  Effect.flatMap(TargetGuard, (guard) =>
    Effect.flatMap(guard.check(url), guard.addresses).pipe(
      Effect.catchAll((error) => Effect.succeed(error._tag === "TargetRefused" ? error.reason : "not resolved"))
    )
  )

const passesText = (url: string) => Effect.map(TargetGuard, (guard) => Either.isRight(guard.check(url)))

const notPublic = "target is not a public address: tilld listen forwards events to one"

// The property below judges every block in every spelling of its addresses; here is what else a URL can hold.
it.effect.each<[string, string]>([
  ["full-width digits", "https://１２７．０．０．１/"],
  ["circled digits", "https://①②⑦.0.0.1/"],
  ["trailing dot", "https://127.0.0.1./"],
  ["ideographic dots", "https://127。0．0｡1/"],
  ["everything at once", "https://0X7f.%30%30%30.１./"],
  ["backslashes", "https:\\\\127.0.0.1\\hook"],
  ["a line break", "https://127.0\n.0.1/"],
  ["ISATAP", "https://[2606:4700::5efe:7f00:1]/"],
  ["a metadata service with a public address", "https://168.63.129.16/"],
  ["localhost", "https://localhost/"],
  ["localhost in capitals", "https://LOCALHOST:8443/"],
  ["localhost with a dot", "https://localhost./"],
  ["localhost, full-width", "https://ｌｏｃａｌｈｏｓｔ/"],
  ["localhost, percent-encoded", "https://%6c%6Fcalhost/"],
  ["below localhost", "https://shop.localhost/"],
  ["below localhost, with a dot", "https://a.b.localhost./"]
])("refuses %s by its text alone: %s", ([, url]) =>
  Effect.gen(function* () {
    expect(yield* passesText(url)).toBe(false)
    expect(yield* judge(url)).toBe(notPublic)
  }).pipe(Effect.provide(guarded()))
)

it.effect.each<[string, string]>([
  ["http://shop.example/", "must begin with https://"],
  ["https://user@shop.example/", "must not contain a user name or a password"],
  ["https://:secret@shop.example/", "must not contain a user name or a password"],
  ["https://shop.example:0/", "must not have port 0"],
  ["https://127.0.0.1../", "must name a host"],
  ["https://.shop.example/", "must name a host"],
  ["file:///etc/passwd", "must begin with https://"],
  ["https://[::1%lo]/", "must be an absolute URL, e.g. https://example.com/webhooks"],
  ["https://[fe80::1%25eth0]/", "must be an absolute URL, e.g. https://example.com/webhooks"],
  ["https://127.0.0.256/", "must be an absolute URL, e.g. https://example.com/webhooks"],
  ["shop.example/hook", "must be an absolute URL, e.g. https://example.com/webhooks"],
  [`https://shop.example/${"x".repeat(2048)}`, "must be at most 2048 characters"]
])("%s %s", ([url, reason]) =>
  Effect.map(judge(url), (found) => expect(found).toBe(reason)).pipe(Effect.provide(guarded()))
)

it.effect.each<[string, string, ReadonlyArray<string>]>([
  ["a name", "https://shop.example/hook?x=1", names["shop.example"]],
  ["a name with a dot and a port", "https://shop.example.:8443/", names["shop.example"]],
  ["8.8.8.8", "https://8.8.8.8/", ["8.8.8.8"]],
  ["Cloudflare over IPv6", "https://[2606:4700:4700::1111]/", ["2606:4700:4700::1111"]]
])("lets %s pass: %s", ([, url, addresses]) =>
  Effect.map(judge(url), (found) => expect(found).toEqual(addresses)).pipe(Effect.provide(guarded()))
)

it.effect.each<[string, string]>([
  ["a name of an inside address", "https://inside.example/"],
  ["one bad address among good ones", "https://mixed.example/"],
  ["an address with a zone", "https://zone.example/"],
  ["a name of a metadata service", "https://cloud.example/"]
])("refuses %s when it is resolved", ([, url]) =>
  Effect.gen(function* () {
    expect(yield* passesText(url)).toBe(true)
    expect(yield* judge(url)).toBe(notPublic)
  }).pipe(Effect.provide(guarded()))
)

it.effect("allow_targets allows exactly the addresses that it lists", () =>
  Effect.gen(function* () {
    expect(yield* judge("https://127.0.0.1:8443/")).toEqual(["127.0.0.1"])
    expect(yield* judge("https://127.0.0.2/")).toBe(notPublic)
    expect(yield* judge("https://inside.example/")).toEqual(["10.0.0.7"])
    expect(yield* judge("https://[::ffff:127.0.0.1]/")).toBe(notPublic)
    // Of the two addresses of localhost, only the one that is open is called.
    expect(yield* judge("https://localhost/")).toEqual(["127.0.0.1"])
  }).pipe(Effect.provide(guarded(["127.0.0.1/32", "10.0.0.0/8"])))
)

it.effect("deny_targets refuses what it lists, even if it is public or allowed", () =>
  Effect.gen(function* () {
    expect(yield* judge("https://shop.example/")).toBe(notPublic)
    expect(yield* judge("https://10.0.0.7/")).toBe(notPublic)
    expect(yield* judge("https://10.0.0.8/")).toEqual(["10.0.0.8"])
    expect(yield* passesText("https://93.184.216.1/")).toBe(false)
  }).pipe(Effect.provide(guarded(["10.0.0.0/8"], ["93.184.216.0/24", "10.0.0.7/32"])))
)

it.effect("what is denied, or is this machine, is not called through a network's NAT64 either", () => {
  const own = OwnAddresses.of(() => ["93.184.216.34"])
  const translated = judge("https://[64:ff9b::5db8:d822]/")
  return Effect.gen(function* () {
    expect(yield* Effect.provide(translated, guarded([], ["93.184.216.0/24"]))).toBe(notPublic)
    expect(yield* Effect.provide(translated, guarded(["64:ff9b::/96"], ["93.184.216.0/24"]))).toBe(notPublic)
    const here = Effect.provideService(Effect.provide(translated, guarded()), OwnAddresses, own)
    expect(yield* here).toBe(notPublic)
  })
})

it.effect("this machine's own public address is not called, unless it is allowed", () => {
  const own = OwnAddresses.of(() => ["::1", "93.184.216.34", "2606:2800:220:1:0248:1893:25c8:1946"])
  const judged = Effect.all(["https://shop.example/", "https://93.184.216.34/", "https://93.184.216.35/"].map(judge), {
    concurrency: 1
  })
  return Effect.gen(function* () {
    expect(yield* Effect.provide(judged, guarded())).toEqual([notPublic, notPublic, ["93.184.216.35"]])
    expect(yield* Effect.provide(judged, guarded(["93.184.216.34/32"]))).toEqual([
      notPublic,
      ["93.184.216.34"],
      ["93.184.216.35"]
    ])
  }).pipe(Effect.provideService(OwnAddresses, own))
})

it("this machine has an address", () => {
  expect(Context.get(Context.empty() as Context.Context<OwnAddresses>, OwnAddresses)()).toContain("127.0.0.1")
})

it.effect.each([
  "https://169.254.169.254/",
  "https://[fd00:ec2::254]/",
  "https://[::ffff:169.254.169.254]/",
  "https://2852039166/",
  "https://cloud.example/"
])("no setting allows %s", (url) =>
  Effect.map(judge(url), (found) => expect(found).toBe(notPublic)).pipe(Effect.provide(guarded(["0.0.0.0/0", "::/0"])))
)

/** One of the texts that a reader of URLs takes for `number`. */
const spelledNumber = (number: bigint) =>
  fc
    .tuple(fc.constantFrom("", "0", "0x", "0X"), fc.integer({ min: 0, max: 3 }), fc.boolean())
    .map(([prefix, zeros, capitals]) => {
      const digits = number.toString(prefix === "" ? 10 : prefix === "0" ? 8 : 16)
      return prefix + (prefix === "" ? "" : "0".repeat(zeros)) + (capitals ? digits.toUpperCase() : digits)
    })

const spelledCharacter = (character: string) =>
  fc.constantFrom(
    character,
    `%${character.charCodeAt(0).toString(16)}`,
    String.fromCharCode(character.charCodeAt(0) - 0x21 + 0xff01)
  )

/** 1 to 4 numbers in any base, the last of which takes all bytes that are left; any character in another form. */
const spelledIpv4 = (value: bigint) =>
  fc.integer({ min: 0, max: 3 }).chain((dots) => {
    const first = Array.from({ length: dots }, (_, i) => (value >> BigInt(24 - 8 * i)) & 0xffn)
    const numbers = [...first, value & ((1n << BigInt(32 - 8 * dots)) - 1n)]
    return fc
      .tuple(fc.tuple(...numbers.map(spelledNumber)), fc.constantFrom("", "."))
      .chain(([parts, end]) => fc.tuple(...[...(parts.join(".") + end)].map(spelledCharacter)))
      .map((characters) => characters.join(""))
  })

/** With or without leading zeros, capitals, a dotted end, and a pair of colons for the first zeros. */
const spelledIpv6 = (value: bigint) =>
  fc.tuple(fc.boolean(), fc.boolean(), fc.boolean(), fc.boolean()).map(([padded, capitals, dotted, short]) => {
    const groups = Array.from({ length: 8 }, (_, i) => (value >> BigInt(112 - 16 * i)) & 0xffffn)
    const hex = groups.map((group) => group.toString(16).padStart(padded ? 4 : 1, "0"))
    const last = [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 0xffn).join(".")
    const parts = dotted ? [...hex.slice(0, 6), last] : hex
    const zeros = groups.slice(0, 6).findIndex((group) => group !== 0n)
    const text = short && zeros > 1 ? `::${parts.slice(zeros).join(":")}` : parts.join(":")
    return `[${capitals ? text.toUpperCase() : text}]`
  })

const spelled = addresses.chain(({ bits, value }) =>
  fc.record({
    bits: fc.constant(bits),
    value: fc.constant(value),
    host: bits === 32 ? spelledIpv4(value) : spelledIpv6(value)
  })
)

it.effect("every spelling of an address is treated alike", () =>
  Effect.map(TargetGuard, (guard) =>
    fc.assert(
      fc.property(spelled, ({ bits, host, value }) => {
        expect(Either.isRight(guard.check(`https://${host}/`))).toBe(stated(value, bits))
      }),
      { numRuns: 2_000 }
    )
  ).pipe(Effect.provide(guarded()))
)

it("agrees with the registries at the edges of every block, and anywhere", () => {
  return fc.assert(
    fc.property(addresses, ({ bits, value }) => {
      expect(isPublic(ipaddr.fromByteArray([...toBytes(value, bits)]))).toBe(stated(value, bits))
    }),
    { numRuns: 5_000 }
  )
})

it("an address beside one of a metadata service is public, and NAT64 of a public address is too", () => {
  for (const address of ["168.63.129.17", "64:ff9b::5db8:d822"]) {
    expect([isPublic(ipaddr.parse(address)), isMetadata(ipaddr.parse(address))]).toEqual([true, false])
  }
})

const metadata = [
  "169.254.169.254",
  "169.254.170.2",
  "100.100.100.200",
  "168.63.129.16",
  "192.0.0.192",
  "fd00:ec2::254",
  "fd20:ce::254",
  "fd00:c1::a9fe:a9fe",
  "fd00:42::42",
  "fd00:a9fe:a9fe::1",
  "fd00:100::100:200",
  "fe80::a9fe:a9fe",
  // 169.254.169.254 in the clothes of IPv6: compatible, mapped, translated, NAT64 of each length, 6to4, Teredo's server
  // and its client, ISATAP.
  "::a9fe:a9fe",
  "::ffff:169.254.169.254",
  "::ffff:0:a9fe:a9fe",
  "64:ff9b::a9fe:a9fe",
  "64:ff9b:1:a9fe:a9:fe00::",
  "64:ff9b:1:a9:fe:a9fe::",
  "64:ff9b:1:0:a9:fea9:fe00::",
  "64:ff9b:1::a9fe:a9fe",
  "2002:a9fe:a9fe::1",
  "2001:0:a9fe:a9fe::1",
  "2001:0:808:808::5601:5601",
  "2606:4700::5efe:a9fe:a9fe",
  "2606:4700::200:5efe:a9fe:a9fe"
]

it("a metadata service is known by each of its addresses, however IPv6 embeds it", () => {
  expect(metadata.filter((address) => !isMetadata(ipaddr.parse(address)))).toEqual([])
})
