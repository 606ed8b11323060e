import { expect, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { Secrets, WrongMasterKey } from "../src/Secrets.ts"
import { MasterKey } from "../src/Settings.ts"
import * as Sql from "../src/Sql.ts"
import { temporaryDatabase } from "./lib/store.ts"

const masterKey = (byte: number) => Layer.succeed(MasterKey, Redacted.make(new Uint8Array(32).fill(byte)))

const secretsOn = (database: string, key: number) =>
  Secrets.layer.pipe(Layer.provide(masterKey(key)), Layer.provide(Sql.layer(database)))

const withSecrets = <A, E>(use: (secrets: Secrets["Type"]) => Effect.Effect<A, E>) =>
  Effect.gen(function* () {
    const database = yield* temporaryDatabase
    return yield* Effect.provide(Effect.flatMap(Secrets, use), secretsOn(database, 1))
  }).pipe(Effect.scoped)

it.live("a sealed secret opens in its context, and is sealed differently each time", () =>
  withSecrets(({ open, seal }) =>
    Effect.sync(() => {
      for (const plain of ["", "whsec_secret", "ключ 🔑", "x".repeat(10_000)]) {
        const sealed = seal(plain, "endpoint wh_1")
        expect(Redacted.value(open(sealed, "endpoint wh_1"))).toBe(plain)
        expect(Buffer.from(sealed).equals(Buffer.from(seal(plain, "endpoint wh_1")))).toBe(false)
        if (plain !== "") expect(Buffer.from(sealed).includes(plain)).toBe(false)
      }
    })
  )
)

it.live("a changed bit, another context, a truncated or an unknown form does not open", () =>
  withSecrets(({ open, seal }) =>
    Effect.sync(() => {
      const sealed = seal("whsec_secret", "endpoint wh_1")
      expect(() => open(sealed, "endpoint wh_2")).toThrow("endpoint wh_2")
      for (let i = 0; i < sealed.length; i++) {
        const changed = Uint8Array.from(sealed)
        changed[i] = (changed[i] ?? 0) ^ 1
        expect(() => open(changed, "endpoint wh_1"), `byte ${i}`).toThrow("endpoint wh_1")
      }
      for (const length of [0, 1, 12, 28, sealed.length - 1]) {
        expect(() => open(sealed.subarray(0, length), "endpoint wh_1"), `${length} bytes`).toThrow("endpoint wh_1")
      }
    })
  )
)

it.live("the master key of the first start permanently stays the only one", () =>
  Effect.gen(function* () {
    const database = yield* temporaryDatabase
    const sealed = yield* Effect.provide(
      Effect.map(Secrets, ({ seal }) => seal("whsec_secret", "x")),
      secretsOn(database, 1)
    )
    const wrong = yield* Effect.flip(Effect.provide(Secrets, secretsOn(database, 2)))
    expect(wrong).toBeInstanceOf(WrongMasterKey)
    expect(wrong.message).toMatch(/TILLD_MASTER_KEY/)
    const opened = yield* Effect.provide(
      Effect.map(Secrets, ({ open }) => Redacted.value(open(sealed, "x"))),
      secretsOn(database, 1)
    )
    expect(opened).toBe("whsec_secret")
  }).pipe(Effect.scoped)
)
