import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import Database from "better-sqlite3"
import { Effect } from "effect"
import { migrateFile } from "../../src/Sql/migrate.ts"
import { Dice } from "./Dice.ts"
import { Place } from "./Place.ts"
import { plansOf } from "./plans.ts"
import { play, reasonOf } from "./play.ts"
import { type Step, stepsOf } from "./steps.ts"
import { World } from "./World.ts"

/** Where databases live for a moment: in memory, where the system has such a folder. */
const folder = existsSync("/dev/shm") ? "/dev/shm" : tmpdir()

/** A folder for worlds, with an empty database that each of them begins with a copy of. */
export class Stage {
  readonly #folder = mkdtempSync(join(folder, "tilld-sim-"))
  #worlds = 0

  static async make(): Promise<Stage> {
    const stage = new Stage()
    await Effect.runPromise(migrateFile(stage.#template))
    const database = new Database(stage.#template)
    database.pragma("journal_mode = WAL")
    database.exec("INSERT INTO accounts (id, name, created_at) VALUES ('default', 'Shop', 0), ('other', 'Shop 2', 0)")
    database.close()
    return stage
  }

  get #template(): string {
    return join(this.#folder, "empty.db")
  }

  world(seed: string, places: ReadonlyArray<Place>): World {
    return new World(seed, places, this.#template, join(this.#folder, `${this.#worlds++}.db`))
  }

  /**
   * What goes wrong when a seed's chains, payments and daemon go these steps; undefined when nothing does. `isLate`: some
   * chains have no provider that answers at the start.
   */
  async run(seed: string, steps: ReadonlyArray<Step>, isLate = true): Promise<string | undefined> {
    const dice = new Dice(`places ${seed}`)
    const places = plansOf(new Dice(`chains ${seed}`)).map((plan) => new Place(plan, dice))
    const lateness = new Dice(`late ${seed}`)
    for (const place of isLate ? places : []) if (lateness.chance(0.15)) place.beginsAfter(lateness.pick([5, 20, 60]))
    const world = this.world(seed, places)
    try {
      await play(world, steps)
      return undefined
    } catch (error) {
      return reasonOf(error)
    } finally {
      await world.end()
    }
  }

  close(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

export const seedsSteps = (seed: string): ReadonlyArray<Step> =>
  stepsOf(new Dice(`steps ${seed}`), plansOf(new Dice(`chains ${seed}`)))

/** Fewer steps that still fail: halves first, then ever smaller parts, down to single steps. */
export const shrink = async (
  steps: ReadonlyArray<Step>,
  fails: (steps: ReadonlyArray<Step>) => Promise<boolean>
): Promise<ReadonlyArray<Step>> => {
  let left = steps
  for (let size = Math.ceil(left.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < left.length; ) {
      const fewer = [...left.slice(0, at), ...left.slice(at + size)]
      if (await fails(fewer)) left = fewer
      else at += size
    }
  }
  return left
}
