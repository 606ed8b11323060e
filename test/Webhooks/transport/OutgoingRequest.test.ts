import { expect, it } from "@effect/vitest"
import { Effect, Fiber, Option } from "effect"
import { OutgoingRequest } from "../../../src/Webhooks/transport/OutgoingRequest.ts"
import { NoAnswer } from "../../../src/Webhooks/transport/targetConnection.ts"

const posting = () =>
  new OutgoingRequest(
    { url: new URL("https://shop.example/hooks"), host: "shop.example" },
    {
      url: "https://shop.example/hooks",
      headers: {},
      body: Buffer.from("{}")
    }
  )

it.effect.each(["before", "after"])(
  "a deadline that fires %s the break of a kept connection is the end of the attempt over another one too",
  (order) =>
    Effect.gen(function* () {
      const one = posting()
      if (order === "before") one.expire()
      one.renew()
      if (order === "after") one.expire()
      const waiting = yield* Effect.fork(Effect.flip(one.expired))
      yield* Effect.repeatN(Effect.yieldNow(), 10)
      const ended = Option.getOrThrow(yield* Fiber.poll(waiting))
      expect(yield* ended).toEqual(new NoAnswer({ reason: "timeout" }))
    })
)
