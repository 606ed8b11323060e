import { expect } from "@effect/vitest"
import type { Uncorroborated } from "../../../src/Chains/corroboration/CorroborationRepo.ts"
import { receiptEvidenceOf } from "../../../src/Chains/corroboration/receiptEvidence.ts"
import { no, onOtherBlock } from "../../../src/Chains/evidence/Ballot.ts"
import { soleProvider } from "../../lib/soleProvider.ts"
import { alice } from "../around.ts"
import { watchOf } from "../balances/reconcileWorld.ts"
import { story } from "../balances/story.ts"
import { ModelChain } from "../ModelChain.ts"

const receiptIn = ({ hash, number }: { readonly hash: string; readonly number: number }): Uncorroborated => ({
  ...{ blockHash: hash, blockNumber: number, address: alice.toLowerCase(), position: "tx:0" },
  ...{ txHash: `0x${"7".repeat(64)}`, currency: "ETH", amount: 1n, seenAt: 0 },
  ...{ deniedBy: undefined, isDenied: false, reportedBy: undefined, unverifiable: false }
})

story("a provider denies a transaction that it does not know, by its own block and its own depth", [], function* () {
  const chain = new ModelChain(10)
  const { provider, providers } = soleProvider(chain.client)
  const watch = yield* watchOf(providers)
  const deep = receiptIn(chain.mine())
  const elsewhere = receiptIn({ hash: `0x${"8".repeat(64)}`, number: 11 })
  chain.mineMany(watch.chain.confirmations - 1)
  const shallow = receiptIn(chain.blocks[12] ?? { hash: "", number: 12 })
  const { answers, head } = yield* receiptEvidenceOf(provider, watch, [deep, elsewhere, shallow])
  expect(head).toBe(10 + watch.chain.confirmations)
  expect(answers).toEqual(
    new Map([
      [deep, no],
      [elsewhere, onOtherBlock]
    ])
  )
})
