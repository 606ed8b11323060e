import { expect, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Layer, Runtime } from "effect"
import { Reader, type StoreUnavailable, Tx, Writer } from "../../src/Sql.ts"
import { tempStore } from "../lib/store.ts"

/**
 * Runs `count` commands, one in each turn of the event loop. Returns how many of them had been `committed` and how many
 * `given` when each ran.
 */
const oneATurn = (commands: number, onTurn: () => void = () => {}) =>
  Effect.gen(function* () {
    const writer = yield* Writer
    const reader = yield* Reader
    const fork = Runtime.runFork(yield* Effect.runtime<never>())
    const forked: Array<Fiber.Fiber<void, StoreUnavailable>> = []
    const committed: Array<number> = []
    const given: Array<number> = []
    const command = (i: number) =>
      Effect.gen(function* () {
        const tx = yield* Tx
        yield* tx.run("INSERT INTO meta (key, value) VALUES (?, '')", [`k${i}`])
        const row = yield* reader.get<{ n: number }>("SELECT count(*) AS n FROM meta WHERE value = ''")
        committed.push(row?.n ?? -1)
        given.push(forked.length)
      })
    yield* Effect.async<void>((resume) => {
      // The next turn is requested before the writer requests it, so that the command is there when the writer looks.
      const turn = (i: number) => {
        onTurn()
        if (i < commands) setImmediate(turn, i + 1)
        else resume(Effect.void)
        forked.push(fork(writer.write(command(i))))
      }
      turn(1)
    })
    yield* Fiber.joinAll(forked)
    return { committed, given }
  })

// The test clock stands still, so that no group ends by its time limit.
it.effect("commands that arrive one in each turn of the event loop share a commit", () =>
  Effect.gen(function* () {
    const { committed } = yield* oneATurn(20)
    expect(committed).toEqual(Array.from({ length: 20 }, () => 0))
  }).pipe(Effect.provide(tempStore))
)

it.effect("a commit with the maximum number of commands does not wait for more", () =>
  Effect.gen(function* () {
    const { committed, given } = yield* oneATurn(300)
    expect(given[0]).toBe(256)
    expect(committed.filter((n) => n === 0)).toHaveLength(256)
    expect(committed.filter((n) => n === 256)).toHaveLength(44)
  }).pipe(Effect.provide(tempStore))
)

it.effect("a commit waits for further commands for some milliseconds at most", () =>
  Effect.gen(function* () {
    let now = 0n
    const slowTurn = () => {
      now += 3_000_000n
    }
    const clock = Object.assign(Clock.make(), { unsafeCurrentTimeNanos: () => now })
    const { committed } = yield* Effect.provide(oneATurn(20, slowTurn), Layer.provide(tempStore, Layer.setClock(clock)))
    expect(committed.slice(0, 6)).toEqual([0, 0, 0, 3, 3, 3])
  })
)
