import { randomInt } from "node:crypto"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { crashes, type Ending, killed } from "../crash/crashes.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { Dice } from "../sim/Dice.ts"
import { makeDisk } from "./disk.ts"
import { makePowerCuts } from "./powerCut.ts"

const { SEED } = process.env
const seed = Number(SEED ?? randomInt(2 ** 31))

/** Every acknowledged payment is there, and every event has arrived, however the lives ended. */
const nothingIsLost = (deaths: number, ending: Ending) =>
  Effect.map(crashes(deaths, seed, ending), ({ paid, payments, problems }) => {
    expect(problems, `SEED=${seed}`).toEqual([])
    expect([payments > deaths, paid > 0]).toEqual([true, true])
  })

/** Megabytes: from too little to start to hardly enough under load. */
const heap = (life: number) => 20 + 3 * (life % 5)

it.live("200 kills under load lose nothing", () => nothingIsLost(200, killed))

liveTest("25 power cuts lose nothing that was acknowledged, whatever the disk kept of the rest", function* () {
  yield* nothingIsLost(25, yield* makePowerCuts(yield* makeDisk, new Dice(String(seed))))
})

it.live("10 stops by SIGTERM under load lose nothing, and each is a success", () =>
  nothingIsLost(10, { ...killed, signal: "SIGTERM", isExpected: ({ code }) => code === 0 })
)

liveTest("too little memory ends the process, and loses nothing", function* () {
  const ends: Array<NodeJS.Signals | null> = []
  yield* nothingIsLost(10, {
    ...killed,
    prepare: (_, life) => Effect.succeed({ NODE_OPTIONS: `--max-old-space-size=${heap(life)}` }),
    isExpected: ({ signal }) => {
      ends.push(signal)
      return signal === "SIGKILL" || signal === "SIGABRT"
    }
  })
  // Node aborts where its heap is full.
  expect(ends).toContain("SIGABRT")
})
