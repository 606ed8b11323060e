import { describe, expect, it } from "@effect/vitest"
import { Cause, Effect, Exit } from "effect"
import { codeExceptionsAsErrors, storeDefectsAsDefects } from "../../../src/Chains/watcher/Watcher.ts"
import { ModelChain } from "../ModelChain.ts"

const { client } = new ModelChain(1)
const asExit = (work: Effect.Effect<unknown>) => Effect.exit(codeExceptionsAsErrors(client)(work))

describe("a defect while a response of a provider is processed", () => {
  it.effect.each([
    new RangeError("Maximum call stack size exceeded"),
    new TypeError("no function"),
    new SyntaxError("0x")
  ])("is the provider's failure if a value has an unexpected type: %s", (defect) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(codeExceptionsAsErrors(client)(Effect.die(defect)))
      expect(error).toMatchObject({ _tag: "RpcError", reason: "garbage", host: client.host })
      expect(error.message).toContain(defect.message)
      // The message may contain the provider's data: it is not for the public.
      expect(error.summary).not.toContain(defect.message)
    })
  )

  it.effect("ends the process if it is any other defect", () =>
    Effect.gen(function* () {
      const bug = new Error("a bug")
      expect(yield* asExit(Effect.die(bug))).toEqual(Exit.die(bug))
    })
  )

  it.effect("ends the process if it comes from the database, whatever it is", () =>
    Effect.gen(function* () {
      const bug = new TypeError("a bug in a command")
      const { write } = storeDefectsAsDefects({ write: () => Effect.die(bug) })
      const exit = yield* asExit(Effect.orDie(write(Effect.void)))
      expect(Exit.isFailure(exit) && Cause.isDie(exit.cause)).toBe(true)
      expect(String(Exit.isFailure(exit) && Cause.pretty(exit.cause, { renderErrorCause: true }))).toContain(
        bug.message
      )
    })
  )
})
