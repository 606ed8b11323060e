import { describe, expect, it } from "vitest"
import { Dice } from "./Dice.ts"
import { epoch, Place } from "./Place.ts"
import { plans } from "./plans.ts"
import { addressOf } from "./transactions.ts"

const second = 1_000
const alice = addressOf("alice")

const placeOf = (providers: number) => {
  const [plan] = plans
  if (plan === undefined) throw new Error("there is no chain")
  return new Place(plan, new Dice("a place"), {}, { providers })
}
/** The first provider hides what comes to an address, unless no one would say what is true. */
const hides = (place: Place, now: number) => {
  const order = { kind: "hidden", address: alice, transaction: undefined, size: 0n, name: "a lie" } as const
  place.tells(0, order, now, now + 60 * second)
  return place.hasLied
}

describe("a provider", () => {
  it("lies where another one can deny it", () => {
    expect(hides(placeOf(2), epoch)).toBe(true)
  })

  it("does not start to lie while all others are gone", () => {
    const place = placeOf(2)
    place.breaks(1, "gone", 1, epoch, epoch + 100 * second)
    expect(hides(place, epoch + 99 * second)).toBe(false)
    expect(hides(place, epoch + 100 * second)).toBe(true)
  })

  it("lies while one of the others is gone and one is available", () => {
    const place = placeOf(3)
    place.breaks(2, "gone", 1, epoch, epoch + 100 * second)
    expect(hides(place, epoch)).toBe(true)
  })
})
