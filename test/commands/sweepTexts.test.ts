import { expect, it } from "vitest"
import { madeText, resultText } from "../../src/commands/sweepTexts.ts"
import { planOf, refunded } from "../Collect/plans.ts"

it("the account of a broadcast names what went where, what was sent back, the sums and what differs", () => {
  const [address, to, hash] = ["0xA1", "0xB2", "0xc3"]
  const common = { address, currency: "USDC" }
  expect(
    resultText({
      digest: "0xd4",
      transfers: [{ ...common, hash, place: 0, to, amount: "5000000", refund: refunded[0], at: 7 }],
      ...{ unsent: [], gas: [] },
      totals: [
        {
          ...{ currency: "USDC", decimals: 6, before: "7000000", received: "5000000", gas: "0" },
          ...{ stayed: "1999999", cameMeanwhile: "250000" }
        }
      ],
      differences: [{ ...common, amount: "1", why: "something else took it from there" }]
    }).split("\n")
  ).toEqual([
    "1 transfer was made, with the chain's confirmations",
    "To 0xB2",
    "In 0xc3",
    `${refunded[0]} was sent back from 0xA1`,
    "USDC: 7 before = 5 received + 1.999999 stayed; 0.25 came meanwhile, and stays",
    "DIFFERENCE  0xA1: 0.000001 USDC: something else took it from there"
  ])
})

it("a plan that may hold what a customer is owed says what its broadcast needs", () => {
  const told = (includeOpen: boolean) => madeText(planOf(), { file: "plan.json", includeOpen, seesFees: true })
  expect(told(true)).toContain("its broadcast is asked for --include-open, too")
  expect(told(false)).not.toContain("--include-open")
})
