/** The effect of the next start on a restored database, with the current configuration. */
import { Effect } from "effect"
import { blindJump, unitFolder } from "../Payments/addresses/IndexMark.ts"
import { overtakenIn } from "../Payments/addresses/otherMarks.ts"
import * as WalletsRepo from "../Payments/addresses/WalletsRepo.ts"
import { allWalletUsers } from "../Payments/addresses/walletUsers.ts"
import { type OpenNeed, selectOpenNeeds } from "../Payments/OpenNeedsRepo.ts"
import { decimalsNow, unmetNeeds } from "../Payments/openNeeds.ts"
import { Settings } from "../Settings.ts"
import { Reader } from "../Sql.ts"

/** Reasons to refuse the start: payments need something that the configuration lacks. */
export const startRefusals = Effect.gen(function* () {
  const { chains } = yield* Settings
  const reader = yield* Reader
  return unmetNeeds(chains, yield* reader.all<OpenNeed>(selectOpenNeeds, [decimalsNow(chains)]))
})

/** The indexes that each wallet will skip. */
export const skippedBy = Effect.gen(function* () {
  const { markFolder, path } = (yield* Settings).database
  const users = yield* allWalletUsers
  const others = overtakenIn([markFolder, unitFolder], path, {})
  return (yield* WalletsRepo.all(yield* Reader)).map(({ fingerprint, jump, next_index }) => {
    const usedBy = users.filter((user) => user.fingerprint === fingerprint).map(({ name }) => name)
    const beyond = usedBy.length === 0 ? 0 : (others.get(fingerprint)?.next ?? 0)
    return {
      wallet: fingerprint,
      /** The backup's next index, and the one after the next start. */
      from: next_index,
      next: Math.max(next_index + jump, beyond) + blindJump,
      /** Where it is empty, no start has the wallet's key: it skips nothing, and watches none of these addresses. */
      usedBy
    }
  })
})
