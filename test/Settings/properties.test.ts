import { expect, it } from "@effect/vitest"
import { Duration, Effect, Exit, Option } from "effect"
import * as fc from "fast-check"
import { keyInText, keyInValue } from "../../src/Settings/keyMaterial.ts"
import { load } from "../../src/Settings/load.ts"
import { parseDuration } from "../../src/Settings/valueSchemas.ts"
import { SettingsInvalid } from "../../src/Settings.ts"

const sections = {
  SERVER: ["HOST", "PORT", "PUBLIC_URL", "TRUSTED_PROXIES"],
  WALLETS: ["LIVE", "TEST"],
  PAYMENTS: ["SETTLE_GRACE", "TOLERANCE_BPS"],
  WEBHOOKS: ["ALLOW_TARGETS", "EXTRA_CA_FILE"],
  RATES: ["SOURCES", "FIXED__ETH"],
  CHAINS__BASE__TEST: ["RPC_URLS", "CHAIN_ID", "START_BLOCK", "POLICY", "TOKENS__USDC__ADDRESS"]
}
const variables = [
  ...Object.entries(sections).flatMap(([section, keys]) => keys.map((key) => `TILLD_${section}__${key}`)),
  ...["ADMIN__PORT", "DATABASE__PATH", "PORTAL__ENABLED", "LOG__LEVEL", "ALERTS__URL"].map((key) => `TILLD_${key}`),
  ...["TILLD_NONSENSE", "TILLD_CHAINS__BASE__LIVE__CONSTRUCTOR"]
]

const values = fc.oneof(
  fc.string(),
  fc.string({ unit: "binary" }),
  fc.json(),
  fc.integer().map(String),
  fc.array(fc.string()).map((items) => JSON.stringify(items)),
  fc.constantFrom("", "[", '""', "1e400", "0x10", "inf", "1979-05-27", "a\nb = 2", "http://", "{ __proto__ = 1 }")
)

const environments = fc.dictionary(fc.constantFrom(...variables), values, { maxKeys: 5 })

it("any environment gives a configuration or a list of problems", () => {
  void fc.assert(
    fc.property(environments, (env) => {
      const exit = Effect.runSyncExit(Effect.either(load({ path: "config/sandbox.toml", env })))
      if (Exit.isFailure(exit)) throw exit.cause
      if (exit.value._tag === "Left") {
        expect(exit.value.left).toBeInstanceOf(SettingsInvalid)
        expect(exit.value.left.problems.length).toBeGreaterThan(0)
      }
    }),
    { numRuns: 100 }
  )
})

const hex = fc.string({ unit: fc.constantFrom(..."0123456789abcdef"), minLength: 25, maxLength: 80 })

it("a value too long to be a typing error is not shown in the problem", () => {
  void fc.assert(
    fc.property(fc.constantFrom(...variables), hex, (variable, secret) => {
      const exit = Effect.runSync(Effect.either(load({ path: "config/sandbox.toml", env: { [variable]: secret } })))
      if (exit._tag === "Left") expect(exit.left.message).not.toContain(secret)
    }),
    { numRuns: 100 }
  )
})

it("durations are accepted in both forms, and never negative", () => {
  const long = { ms: "millis", s: "seconds", m: "minutes", h: "hours", d: "days", w: "weeks" }
  void fc.assert(
    fc.property(fc.nat(100_000), fc.constantFrom("ms", "s", "m", "h", "d", "w" as const), (amount, unit) => {
      const short = parseDuration(`${amount}${unit}`)
      expect(short).toEqual(parseDuration(`${amount} ${long[unit as keyof typeof long]}`))
      expect(Option.isSome(short)).toBe(true)
    })
  )
  expect(parseDuration("1.5h")).toEqual(Option.some(Duration.minutes(90)))
  for (const wrong of ["", "5", "-5s", "5 s", "5S", "Infinity", "1e3s", "5 fortnights", "5s "]) {
    expect(parseDuration(wrong), wrong).toEqual(Option.none())
  }
})

it("prose and addresses are not taken for private keys", () => {
  const prose =
    "# One section per chain and mode: a chain without a section is off in that mode, and two providers are better"
  expect(keyInText(prose)).toBeUndefined()
  expect(keyInValue("0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48")).toBeUndefined()
  expect(keyInValue(`https://rpc.example.com/${"ab".repeat(32)}`)).toBeUndefined()
  expect(keyInValue("ab".repeat(32))).toBe("a private key (64 hex digits)")
})
