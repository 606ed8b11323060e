import { Context, Duration, Effect, Layer, Schedule } from "effect"
import { type Mode, modes } from "../../Domain/Chain.ts"
import { Settings } from "../../Settings.ts"
import { Reader } from "../../Sql.ts"
import { Workers } from "../../Telemetry/Workers.ts"
import { AddressSet } from "./AddressSet.ts"
import * as Repo from "./WatchedAddressesRepo.ts"

/** How often addresses whose late window is over are removed. */
const housekeepingInterval = Duration.hours(1)

/**
 * The addresses that watchers look for, in memory: those of open payments and, within `late_window`, those of ended
 * payments and skipped ones, which a lost newer copy of the database may have handed out. One set for each mode, shared
 * by its chains, since a transfer may arrive on any of them. All but `keep` is synchronous: the set changes after the
 * commit of a payment and before its address is returned.
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
    /** The worker that removes addresses once their late window is over. */
    readonly keep: Effect.Effect<never>
  }
>() {
  /** Loaded from the database at the start. */
  static readonly layer = Layer.effect(
    WatchedAddresses,
    Effect.gen(function* () {
      const reader = yield* Reader
      const settings = yield* Settings
      const lateWindow = Duration.toMillis(settings.payments.lateWindow)
      const sets: Readonly<Record<Mode, AddressSet>> = { live: new AddressSet(), test: new AddressSet() }

      /** By mode, payments that ended up to this time are no longer watched. Unix milliseconds. */
      const removedUntil: Record<Mode, number> = { live: 0, test: 0 }
      for (const mode of modes) {
        removedUntil[mode] = (yield* Repo.timeOf(reader, mode)) - lateWindow
        const add = (address: string) => void sets[mode].add(address)
        yield* Repo.visitOpen(reader, mode, add)
        yield* Repo.visitEnded(reader, mode, removedUntil[mode], Number.MAX_SAFE_INTEGER, add)
      }

      const removeLate = Effect.gen(function* () {
        for (const mode of modes) {
          const until = (yield* Repo.timeOf(reader, mode)) - lateWindow
          const remove = (address: string) => void sets[mode].delete(address)
          yield* Repo.visitEnded(reader, mode, removedUntil[mode], until, remove)
          removedUntil[mode] = Math.max(removedUntil[mode], until)
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
