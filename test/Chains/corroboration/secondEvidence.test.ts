import { describe, expect, it } from "@effect/vitest"
import { Array as Arr } from "effect"
import * as CorroborationRepo from "../../../src/Chains/corroboration/CorroborationRepo.ts"
import type { CorroboratedReceipt, Undated } from "../../../src/Chains/corroboration/SecondEvidenceRepo.ts"
import {
  SearchBallot,
  type SecondEvidence,
  secondEvidenceOf
} from "../../../src/Chains/corroboration/secondEvidence.ts"
import { yes } from "../../../src/Chains/evidence/Ballot.ts"
import * as Ledger from "../../../src/Chains/ledger/LedgerRepo.ts"
import { BlockRange } from "../../../src/Chains/providers/BlockRange.ts"
import type { Provider } from "../../../src/Chains/providers/Providers.ts"
import { newPaymentId, type PaymentId } from "../../../src/Domain/Ids.ts"
import { write } from "../../lib/rows.ts"
import { soleProvider } from "../../lib/soleProvider.ts"
import { alice } from "../around.ts"
import { BalanceModel } from "../balances/BalanceModel.ts"
import { network, owe, watchOf } from "../balances/reconcileWorld.ts"
import { story } from "../balances/story.ts"
import { coin, ModelChain } from "../ModelChain.ts"

const receipt = (position: string, blockTime = 100, sinceTime?: number): CorroboratedReceipt => ({
  blockHash: "0xb",
  address: "0xa",
  position,
  blockTime,
  sinceTime
})

/** Providers that answer one after the other. */
const voters = ["1", "2", "3"].map(
  (seed, index): Provider => ({ client: new BalanceModel(seed).client, blockRange: new BlockRange(), index })
)

const dated = (...receipts: ReadonlyArray<CorroboratedReceipt>): SecondEvidence => ({
  answers: receipts.map((one) => [one, yes(one)]),
  shown: []
})

const counted = (all: ReadonlyArray<SecondEvidence>, undated: ReadonlyArray<Undated> = []) => {
  const ballot = new SearchBallot(undated)
  for (const [voter, evidence] of Arr.zip(voters, all)) ballot.add(voter, evidence)
  return ballot
}

describe("a receipt that two providers corroborate", () => {
  it("has the same block times at both", () => {
    const times = dated(receipt("log:1"), receipt("log:2", 100), receipt("unattributed", 100, 90))
    const others = dated(receipt("log:1"), receipt("log:2", 101), receipt("unattributed", 100, 91))
    expect(counted([times, others]).corroborated).toEqual([receipt("log:1")])
    expect(counted([times, others, dated(receipt("log:2", 101))]).corroborated).toEqual([
      receipt("log:1"),
      receipt("log:2", 101)
    ])
  })

  it("is not one that a single provider reports twice, and is returned once, however many have it", () => {
    const once = dated(receipt("log:1"))
    expect(counted([dated(receipt("log:1"), receipt("log:1")), dated()]).corroborated).toEqual([])
    expect(counted([once, once, once]).corroborated).toEqual([receipt("log:1")])
  })

  it("is one that the only provider has that responds", () => {
    expect(counted([dated(receipt("log:1"))]).corroborated).toEqual([receipt("log:1")])
  })
})

it("payments wait whose money has no corroborated block times", () => {
  const undated = (blockHash: string, payment: string): Undated => ({
    blockHash,
    address: "0xa",
    position: "unattributed",
    payment: payment as PaymentId,
    blockNumber: 1,
    amount: 1n,
    blockTime: 10,
    since: undefined
  })
  const oneSided = [undated("0xb", "one"), undated("0xc", "two"), undated("0xd", "two")]
  const { answers } = dated(receipt("unattributed"), { ...receipt("unattributed"), blockHash: "0xc" })
  // Both show the money by their own states, and differ about its time alone.
  const both = { answers, shown: oneSided }
  const ballot = counted([both, both], oneSided)
  expect(ballot.undated).toEqual(new Set(["two"]))
  expect(ballot.unshown).toEqual(new Set())
  expect(ballot.isDecided).toBe(false)
})

it("money that only one of two providers shows does not count", () => {
  const undated = ["one", "two", "three"].map(
    (position): Undated => ({
      ...receipt(position),
      ...{ payment: newPaymentId(0), blockNumber: 1, amount: 1n, since: undefined }
    })
  )
  const unshown = (...all: ReadonlyArray<ReadonlyArray<number>>) => {
    const words = all.map((shows) => ({ shown: undated.filter((_, i) => shows.includes(i)), answers: [] }))
    return [...counted(words, undated).unshown].map((key) => key.match(/one|two|three/)?.[0])
  }
  expect(unshown([0, 1, 2], [])).toEqual(["one", "two", "three"])
  expect(unshown([0, 1, 2], [0, 2])).toEqual(["two"])
  expect(unshown([0, 1], [], [0, 2])).toEqual(["two", "three"])
  // The evidence of a sole provider is enough.
  expect(unshown([1, 2])).toEqual(["one"])
})

const unattributed = (blockHash: string, amount: bigint): Undated => ({
  ...{ payment: newPaymentId(0), address: alice.toLowerCase(), position: "unattributed", since: 11, amount },
  ...{ blockHash, blockNumber: 12, blockTime: 120 }
})

story("money without a transaction is dated by providers that have its block and the amount", [], function* () {
  const chain = new ModelChain(11)
  const settled = chain.mine(coin(alice, 5n))
  const { hash } = settled
  const { provider, providers } = soleProvider(chain.client)
  const undated = [unattributed(hash, 5n), unattributed("0xother", 5n), unattributed(hash, 6n)]
  const { answers } = yield* secondEvidenceOf(yield* watchOf(providers), provider, undated, settled)
  expect(answers).toMatchObject([[{}, { is: "yes", value: { blockHash: hash, blockTime: 120, sinceTime: 110 } }]])
  // Not by what the provider said that reported it.
  const misdated = [{ ...unattributed(hash, 5n), blockTime: 121 }]
  const again = yield* secondEvidenceOf(yield* watchOf(providers), provider, misdated, settled)
  expect(again.answers).toMatchObject([[{}, { is: "yes", value: { blockTime: 120 } }]])
})

story("money whose states a provider has pruned is shown by a balance of which nothing was sent", [], function* () {
  const chain = new ModelChain(11)
  const paid = chain.mine(coin(alice, 5n))
  chain.mineMany(9)
  const settled = chain.mine()
  const { provider, providers } = soleProvider(chain.client)
  const money = unattributed(paid.hash, 5n)
  const watch = yield* watchOf(providers)
  const evidence = () => secondEvidenceOf(watch, provider, [money], settled)
  const shown = { shown: [money], answers: [[{ blockHash: paid.hash }, { is: "yes" }]] }
  const notShown = { ...shown, shown: [] }
  yield* owe(alice)
  const kept = { ...money, currency: "ETH", txHash: undefined, since: 11, reportedBy: "other" }
  yield* write(Ledger.keepReceipts(network, [kept], false))
  chain.oldestState = settled.number
  expect(yield* evidence()).toMatchObject(shown)
  // It has no states of that block either, but of its newest one.
  chain.oldestState = chain.mine().number
  expect(yield* evidence()).toMatchObject(shown)
  // The address does not hold all of it: some was invented, and it is not known which.
  const more = { ...kept, blockNumber: 13, blockHash: chain.blocks[13]?.hash ?? "", amount: 1n }
  yield* write(Ledger.keepReceipts(network, [more], false))
  expect(yield* evidence()).toMatchObject(notShown)
  // It need not hold refuted money, or money that arrived after that block.
  yield* write(CorroborationRepo.refute(network, more))
  chain.oldestState = settled.number
  const later = { ...more, blockNumber: 24, blockHash: chain.mine().hash }
  yield* write(Ledger.keepReceipts(network, [later], false))
  expect(yield* evidence()).toMatchObject(shown)
  // What it holds now may have arrived since.
  chain.oldestState = chain.mine(coin(alice, 3n)).number
  expect(yield* evidence()).toMatchObject(notShown)
  chain.oldestState = settled.number
  // Once it has sent some, its balance says nothing about what arrived.
  chain.distort = ({ method }, answer) => (method === "eth_getTransactionCount" ? "0x1" : answer)
  expect(yield* evidence()).toMatchObject(notShown)
})
