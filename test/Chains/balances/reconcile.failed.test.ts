import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { direct, inside } from "./BalanceModel.ts"
import {
  alice,
  bob,
  depsOf,
  inStore,
  look,
  owing,
  refusing,
  round,
  scan,
  scanTo,
  told,
  wanted
} from "./reconcileWorld.ts"

it.scoped("a round does not count as complete while one of two failed addresses is not given up", () =>
  Effect.gen(function* () {
    const model = yield* owing("two", alice, bob)
    model.mine([direct(alice, 5n)])
    model.mine([direct(bob, 6n)])
    yield* scanTo(model.head)
    const deps = depsOf(refusing(model, () => [1, 2]))
    const { reading } = yield* look(deps, model.head, yield* wanted(model.head), { hopeless: new Set([alice]) })
    expect(reading.failed.map(({ address, givenUp }) => [address, givenUp]).sort()).toEqual([
      [alice, true],
      [bob, false]
    ])
    expect(yield* told(alice)).toEqual(["2 unattributed 5"])
    expect((yield* scan)?.checked).toBeUndefined()
    yield* look(deps, model.head, yield* wanted(model.head), { hopeless: new Set([alice, bob]) })
    expect((yield* scan)?.checked?.number).toBe(2)
  }).pipe(inStore)
)

it.scoped("the income of an address that was given up is attributed once its block can be read", () =>
  Effect.gen(function* () {
    const model = yield* owing("later", alice)
    model.mine([direct(alice, 5n)])
    yield* scanTo(model.head)
    const deps = depsOf(refusing(model, () => [1]))
    yield* look(deps, model.head, yield* wanted(model.head), { hopeless: new Set([alice]) })
    expect(yield* told(alice)).toEqual(["1 unattributed 5"])
    model.mine([])
    yield* round(depsOf(model.client), model.head)
    expect(yield* told(alice)).toEqual(["1 tx:0 5"])
  }).pipe(inStore)
)

it.scoped("a failed search for an unattributed receipt does not block the round", () =>
  Effect.gen(function* () {
    const model = yield* owing("again", alice, bob)
    model.traces = false
    model.mine([inside(alice, 3n), inside(alice, 4n)])
    yield* round(depsOf(model.client), model.head)
    model.mine([direct(bob, 6n)])
    yield* round(depsOf(refusing(model, () => [1])), model.head)
    expect([yield* told(alice), yield* told(bob)]).toEqual([["1 unattributed 7"], ["2 tx:0 6"]])
    expect((yield* scan)?.checked?.number).toBe(2)
  }).pipe(inStore)
)
