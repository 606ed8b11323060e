import { expect, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { alice, around, upTo, watchedPayment } from "../around.ts"
import { ModelChain } from "../ModelChain.ts"
import { pass } from "../world.ts"

it.scoped(
  "a single failed response is not logged as a warning; several in a row are, once, and so is the recovery",
  () => {
    const chain = new ModelChain(10)
    const said: Array<string> = []
    const noting = Logger.add(
      Logger.make(({ logLevel, message }) => {
        if (String(message).startsWith("the chain ")) said.push(`${logLevel.label} ${String(message)}`)
      })
    )
    return Effect.gen(function* () {
      yield* watchedPayment(alice)
      yield* upTo(10)
      // Every fifth batch.
      let batches = 0
      chain.intercept = () => {
        chain.failure = batches++ % 5 === 0 ? "unreachable" : undefined
      }
      yield* pass("1 minute")
      chain.intercept = () => {}
      expect(said).toEqual([])
      chain.failure = "unreachable"
      yield* pass("1 minute")
      expect(said).toEqual(["WARN the chain cannot be read"])
      chain.failure = undefined
      yield* pass("30 seconds")
      expect(said).toEqual(["WARN the chain cannot be read", "INFO the chain is read again"])
    }).pipe(Effect.provide(noting), around(chain))
  }
)
