import { Context, Duration, Effect, Layer, Schedule } from "effect"
import { type Mode, modes } from "../../Domain/Chain.ts"
import { Settings } from "../../Settings.ts"
import { Reader } from "../../Sql.ts"
import { Workers } from "../../Telemetry/Workers.ts"
import { AddressSet } from "./AddressSet.ts"
import * as Repo from "./WatchedAddressesRepo.ts"

/** How often addresses whose late window is over are taken out. */
const housekeepingInterval = Duration.hours(1)

/**
 * The addresses that are looked for: those of open payments, and, within `late_window`, those of ended ones and those
 * that a lost newer copy of the database may have handed out. One set a mode, shared by all its chains, since money may
 * come on any. All but `keep` is synchronous: the writer changes the set
 * after its commit and before anybody is told of it.
 */
export class WatchedAddresses extends Context.Tag("tilld/Chains/WatchedAddresses")<
  WatchedAddresses,
  {
    readonly add: (mode: Mode, address: string) => void
    readonly remove: (mode: Mode, address: string) => void
    /** `address`: hexadecimal, in any case. */
    readonly has: (mode: Mode, address: string) => boolean
    readonly size: (mode: Mode) => number
    /** The set itself, for reading. */
    readonly of: (mode: Mode) => AddressSet
    /** The worker that takes out addresses once their late window is over. */
    readonly keep: Effect.Effect<never>
  }
>() {
  /** Loaded from the store. */
  static readonly layer = Layer.effect(
    WatchedAddresses,
    Effect.gen(function* () {
      const reader = yield* Reader
      const settings = yield* Settings
      const lateWindow = Duration.toMillis(settings.payments.lateWindow)
      const sets: Readonly<Record<Mode, AddressSet>> = { live: new AddressSet(), test: new AddressSet() }

      /** Up to when ended payments are not watched any more. */
      const gone: Record<Mode, number> = { live: 0, test: 0 }
      for (const mode of modes) {
        gone[mode] = (yield* Repo.timeOf(reader, mode)) - lateWindow
        const add = (address: string) => void sets[mode].add(address)
        yield* Repo.visitOpen(reader, mode, add)
        yield* Repo.visitEnded(reader, mode, gone[mode], Number.MAX_SAFE_INTEGER, add)
        yield* Repo.visitGaps(reader, mode, gone[mode], Number.MAX_SAFE_INTEGER, add)
      }

      const removeLate = Effect.gen(function* () {
        for (const mode of modes) {
          const until = (yield* Repo.timeOf(reader, mode)) - lateWindow
          const remove = (address: string) => void sets[mode].delete(address)
          yield* Repo.visitEnded(reader, mode, gone[mode], until, remove)
          yield* Repo.visitGaps(reader, mode, gone[mode], until, remove)
          gone[mode] = Math.max(gone[mode], until)
        }
      })

      const alive = (yield* Workers).worker("matching", housekeepingInterval)
      const keep = alive(removeLate).pipe(
        Effect.catchAll((error) =>
          Effect.annotateLogs(Effect.logWarning("ended payments stay watched for another hour"), {
            reason: error.message
          })
        ),
        Effect.schedule(Schedule.spaced(housekeepingInterval)),
        Effect.zipRight(Effect.never)
      )

      return {
        add: (mode, address) => void sets[mode].add(address),
        remove: (mode, address) => void sets[mode].delete(address),
        has: (mode, address) => sets[mode].has(address),
        size: (mode) => sets[mode].size,
        of: (mode) => sets[mode],
        keep
      }
    })
  )
}
