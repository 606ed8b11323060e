import { expect } from "@effect/vitest"
import { Effect } from "effect"
import type { Uncorroborated } from "../../../src/Chains/corroboration/CorroborationRepo.ts"
import { receiptEvidenceOf } from "../../../src/Chains/corroboration/receiptEvidence.ts"
import { no, onOtherBlock, yes } from "../../../src/Chains/evidence/Ballot.ts"
import { soleProvider } from "../../lib/soleProvider.ts"
import { payer } from "../../sim/transactions.ts"
import { alice, usdc } from "../around.ts"
import { watchOf } from "../balances/reconcileWorld.ts"
import { story } from "../balances/story.ts"
import { ModelChain, token } from "../ModelChain.ts"

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

story("a provider that lists a log in its block has it, also without a receipt", [], function* () {
  const chain = new ModelChain(10)
  const { provider, providers } = soleProvider(chain.client)
  const watch = yield* watchOf(providers)
  const sync = { ...token(usdc, alice, 5n), isStateSync: true }
  const block = chain.mine(sync)
  chain.mineMany(watch.chain.confirmations)
  const position = `log:${sync.hash}:${usdc}:5:0`
  const listed = { ...receiptIn(block), txHash: sync.hash, position, currency: "USDC", amount: 5n }
  const invented = { ...listed, position: `log:${sync.hash}:${usdc}:6:0`, amount: 6n }
  const ask = () => Effect.map(receiptEvidenceOf(provider, watch, [listed, invented]), ({ answers }) => answers)
  expect((yield* ask()).get(listed)).toEqual(yes({ time: block.time, sender: payer }))
  expect((yield* ask()).get(invented)).toEqual(no)
  chain.unserved.add("eth_getLogs")
  expect((yield* ask()).get(listed)).toEqual(no)
})
