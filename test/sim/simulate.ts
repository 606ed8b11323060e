import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { getAddress, type Hex } from "viem"
import { Dice } from "./Dice.ts"
import { epoch, Place } from "./Place.ts"
import { plansOf } from "./plans.ts"
import { play, reasonOf } from "./play.ts"
import { engine } from "./Store.ts"
import { type Conditions, type Step, stepsOf, withDecisions } from "./steps.ts"
import { generations, type Kind, kinds, newest, tell, weights } from "./stories.ts"
import { addressOf } from "./transactions.ts"
import { type Between, World } from "./World.ts"
import { type Strictness, usualStrictness } from "./watched.ts"

/** Where databases live for a moment: in memory, where the system has such a folder. */
const folder = existsSync("/dev/shm") ? "/dev/shm" : tmpdir()

const conditionsOf = (steps: ReadonlyArray<Step>): Conditions =>
  Object.assign({}, ...steps.filter(({ does }) => does === "given"))

/** A folder for worlds, with an empty database that each of them begins with a copy of. */
export class Stage {
  readonly #folder = mkdtempSync(join(folder, "tilld-sim-"))
  #worlds = 0
  #isCrowded = false

  constructor(readonly strict: Readonly<Strictness>) {}

  static async make(strict = usualStrictness): Promise<Stage> {
    const stage = new Stage(strict)
    await engine.make(stage.#template, [
      "INSERT INTO accounts (id, name, created_at) VALUES ('default', 'Shop', 0), ('other', 'Shop 2', 0)"
    ])
    return stage
  }

  get #template(): string {
    return join(this.#folder, "empty.db")
  }

  /** The same with so many addresses to be watched that no list of them is given to a provider. */
  get #crowded(): string {
    const path = join(this.#folder, "crowded.db")
    if (this.#isCrowded) return path
    this.#isCrowded = true
    const lost = Array.from(
      { length: 520 },
      (_, i) => `('${getAddress(addressOf(`lost ${i}`) as Hex)}', 'test', 'a lost wallet', ${i}, ${epoch})`
    )
    void engine.make(
      path,
      [
        "INSERT INTO wallets (fingerprint, next_index) VALUES ('a lost wallet', 520)",
        `INSERT INTO gap_addresses (address, mode, wallet, wallet_index, created_at) VALUES ${lost.join(", ")}`
      ],
      this.#template
    )
    return path
  }

  world(seed: string, places: ReadonlyArray<Place>, conditions: Conditions = {}, between?: Between): World {
    const template = conditions.crowded ? this.#crowded : this.#template
    const path = join(this.#folder, `${this.#worlds++}.db`)
    return new World(seed, places, template, path, this.strict, conditions, between)
  }

  /**
   * What goes wrong when a seed's chains, payments and daemon go these steps; undefined when nothing does. `isLate`: some
   * chains have no provider that answers at the start. `look` is shown the database at the end, before it is gone.
   */
  async run(
    seed: string,
    steps: ReadonlyArray<Step>,
    isLate = true,
    look?: (database: string) => void
  ): Promise<string | undefined> {
    const dice = new Dice(`places ${seed}`)
    const conditions = conditionsOf(steps)
    const places = plansOf(new Dice(`chains ${seed}`)).map((plan) => new Place(plan, dice, {}, conditions))
    const lateness = new Dice(`late ${seed}`)
    for (const place of isLate ? places : []) if (lateness.chance(0.15)) place.beginsAfter(lateness.pick([5, 20, 60]))
    const world = this.world(seed, places, conditions)
    try {
      await play(world, steps)
      look?.(world.path)
      return undefined
    } catch (error) {
      return reasonOf(error)
    } finally {
      await world.end()
    }
  }

  close(): void {
    for (const path of [this.#template, ...(this.#isCrowded ? [this.#crowded] : [])]) engine.remove(path)
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** The stories of seeds. `always`: each seed plays one of them, otherwise about every second seed does. */
export interface Choice {
  readonly kinds: ReadonlyArray<Kind>
  readonly always: boolean
}

/** Kinds that the daemon does not handle yet. */
export const leftOut: ReadonlyArray<Kind> = []

export const usual: Choice = { kinds: kinds.filter((kind) => !leftOut.includes(kind)), always: false }

/** Puts the steps of a story among others, in their order and mostly close together. */
const mix = (dice: Dice, story: ReadonlyArray<Step>, others: ReadonlyArray<Step>): ReadonlyArray<Step> => {
  const mixed: Array<Step> = []
  const [left, right] = [[...story], [...others]]
  while (left.length + right.length > 0) {
    const next = (dice.chance(0.75) ? left.shift() : right.shift()) ?? left.shift() ?? right.shift()
    if (next !== undefined) mixed.push(next)
  }
  return mixed
}

/**
 * What a seed does. A kind that is left out takes the place of no other one: the seeds that would tell its story go on
 * without, and all others are as they were.
 */
export const seedsSteps = (seed: string, { always, kinds: chosen }: Choice = usual): ReadonlyArray<Step> => {
  const chains = plansOf(new Dice(`chains ${seed}`))
  const steps = stepsOf(new Dice(`steps ${seed}`), chains)
  const dice = new Dice(`kinds ${seed}`)
  // Decisions at random came with the stories of them.
  const deciding = new Dice(`decisions ${seed}`)
  const isDecided = !always && newest.kinds.every((kind) => chosen.includes(kind)) && deciding.chance(0.15)
  const decided = (all: ReadonlyArray<Step>) => (isDecided ? withDecisions(deciding, all) : all)
  if (dice.chance(0.45) && !always) return decided(steps)
  const picked = Array.from({ length: dice.chance(0.25) ? 2 : 1 }, () =>
    always ? dice.pick(chosen) : dice.weighted(weights)
  )
  for (const generation of always ? [] : generations) {
    const own = new Dice(`${generation.dice} ${seed}`)
    if (own.chance(generation.chance)) picked.push(own.pick(generation.kinds))
  }
  const enabled = picked.filter((kind) => chosen.includes(kind))
  const few = steps.slice(0, dice.below(8))
  const told = enabled.reduce(
    (others, kind, i) => mix(dice, tell(kind, new Dice(`${kind} ${i} ${seed}`), chains, `${kind} ${i}`), others),
    enabled.length === 0 ? steps : few
  )
  return decided(told)
}

/** Fewer steps that still fail: halves first, then smaller and smaller parts, down to single steps. */
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
