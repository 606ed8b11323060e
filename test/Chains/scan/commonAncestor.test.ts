import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Ledger from "../../../src/Chains/ledger/LedgerRepo.ts"
import { commonAncestor } from "../../../src/Chains/scan/commonAncestor.ts"
import { Reader } from "../../../src/Sql.ts"
import { someProviders } from "../../lib/soleProvider.ts"
import { base, inStore, network, scanTo, watchOf } from "../balances/reconcileWorld.ts"
import { ModelChain } from "../ModelChain.ts"

it.scoped("one that decides alone undoes nothing that another one still reports", () =>
  Effect.gen(function* () {
    const honest = new ModelChain(10)
    honest.mineMany(base.confirmations + 5)
    const forked = new ModelChain(-1, [...honest.blocks])
    forked.rollback(base.confirmations + 5)
    forked.mineMany(base.confirmations + 6)
    for (const { number, hash, time } of honest.blocks.slice(8)) yield* scanTo({ number, hash, time })
    const some = someProviders(forked.client, honest.client)
    const watch = yield* watchOf({ ...some.providers, decidesAlone: () => true })
    const scan = yield* Ledger.scan(yield* Reader, network)
    if (scan === undefined) throw new Error("none")
    const at = forked.blocks[scan.head.number]
    if (at === undefined) throw new Error("none")
    expect(at.hash).not.toBe(scan.head.hash)
    const resume = commonAncestor(watch, some.provider, scan, { number: at.number, hash: at.hash, time: at.time })
    expect(yield* Effect.flip(resume)).toMatchObject({ reason: "inconsistent" })
    honest.failure = "timeout"
    expect(yield* resume).toMatchObject({ number: 10 })
  }).pipe(inStore)
)
