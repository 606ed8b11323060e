import { expect, it } from "@effect/vitest"
import type { Uncorroborated } from "../../../src/Chains/corroboration/CorroborationRepo.ts"
import { Contradictions } from "../../../src/Chains/corroboration/contradictions.ts"
import type { ReceiptFacts } from "../../../src/Chains/corroboration/receiptEvidence.ts"
import { Ballot, no, yes } from "../../../src/Chains/evidence/Ballot.ts"
import type { Provider } from "../../../src/Chains/providers/Providers.ts"
import { someProviders } from "../../lib/soleProvider.ts"
import { BalanceModel } from "../balances/BalanceModel.ts"

const minute = 60_000
const [first, other] = ["first", "other"].map((seed) => new BalanceModel(seed).client)

const receiptOf = (txHash: string): Uncorroborated => ({
  ...{ blockHash: "0xb", address: "0xa", position: "log:1", blockNumber: 1, txHash, currency: "USDC", amount: 1n },
  ...{ seenAt: 0, deniedBy: undefined, isDenied: false, reportedBy: undefined, unverifiable: false }
})

it.each([
  ["within an hour", [0, 30 * minute, 59 * minute], [0]],
  ["the first of which is an hour old", [0, 30 * minute, 60 * minute], []],
  ["and the clock was set back since the first", [30 * minute, 0, 10 * minute], []]
] as const)("a provider of two is contradicted by three denials %s", (_, times, expected) => {
  if (first === undefined || other === undefined) throw new Error("no clients")
  const { all } = someProviders(first, other).providers
  const contradictions = new Contradictions(all)
  const found = times.map((now, i) => {
    const receipt = receiptOf(`0x${i}`)
    const ballot = new Ballot<Uncorroborated, ReceiptFacts, Provider>()
    const [serving, denying] = all
    if (denying !== undefined) ballot.vote(receipt, denying, no)
    if (serving !== undefined) ballot.vote(receipt, serving, yes({ time: 10, sender: undefined }))
    return contradictions.find([[receipt, ballot.tally(receipt)]], true, now).map(({ provider }) => provider.index)
  })
  expect(found).toEqual([[], [], expected])
})
