import { expect, it } from "@effect/vitest"
import {
  Ballot,
  middle,
  no,
  onOtherBlock,
  reached,
  unable,
  unanimous,
  type Vote,
  yes
} from "../../../src/Chains/evidence/Ballot.ts"

type Voter = "a" | "b" | "c" | "d"
type Cast = readonly [Voter, Vote<number>]

const tallyOf = (...votes: ReadonlyArray<Cast>) => {
  const ballot = new Ballot<string, number, Voter>()
  for (const [by, answer] of votes) ballot.vote("question", by, answer)
  return ballot.tally("question")
}

const [at1, at2] = [yes(1), yes(2)]

it.each<readonly [string, ReadonlyArray<Cast>, "shown" | "denied" | "open"]>([
  ["no provider responds", [], "open"],
  ["one says yes", [["a", at1]], "open"],
  [
    "one says yes twice",
    [
      ["a", at1],
      ["a", at1]
    ],
    "open"
  ],
  [
    "two say the same",
    [
      ["a", at1],
      ["b", at1]
    ],
    "shown"
  ],
  [
    "two say yes, with other values",
    [
      ["a", at1],
      ["b", at2]
    ],
    "open"
  ],
  [
    "two of three say the same",
    [
      ["a", at2],
      ["b", at1],
      ["c", at1]
    ],
    "shown"
  ],
  ["one says no", [["a", no]], "open"],
  [
    "one says yes and one no",
    [
      ["a", at1],
      ["b", no]
    ],
    "open"
  ],
  [
    "two say no",
    [
      ["a", no],
      ["b", no]
    ],
    "denied"
  ],
  [
    "two say no and one yes",
    [
      ["a", at1],
      ["b", no],
      ["c", no]
    ],
    "denied"
  ],
  [
    "two say yes and two no",
    [
      ["a", no],
      ["b", no],
      ["c", at1],
      ["d", at1]
    ],
    "shown"
  ],
  [
    "one cannot say",
    [
      ["a", at1],
      ["b", unable]
    ],
    "open"
  ],
  [
    "two cannot say",
    [
      ["a", unable],
      ["b", unable]
    ],
    "open"
  ],
  [
    "two have another block",
    [
      ["a", onOtherBlock],
      ["b", onOtherBlock]
    ],
    "denied"
  ],
  [
    "two have another block, and one has this one",
    [
      ["a", onOtherBlock],
      ["b", onOtherBlock],
      ["c", at1]
    ],
    "denied"
  ],
  [
    "two have another block, and two this one, who differ",
    [
      ["a", onOtherBlock],
      ["b", onOtherBlock],
      ["c", at1],
      ["d", no]
    ],
    "open"
  ],
  [
    "two have this block without it, and one another block",
    [
      ["a", no],
      ["b", no],
      ["c", onOtherBlock]
    ],
    "denied"
  ],
  [
    "one says yes, then no",
    [
      ["a", at1],
      ["a", no],
      ["b", at1]
    ],
    "open"
  ],
  [
    "one says yes with two values",
    [
      ["a", at1],
      ["a", at2],
      ["b", at1]
    ],
    "open"
  ],
  [
    "one that contradicted itself says yes again",
    [
      ["a", at1],
      ["a", no],
      ["a", at1],
      ["b", at1]
    ],
    "open"
  ],
  [
    "one says no, then yes",
    [
      ["a", no],
      ["a", at1],
      ["b", no]
    ],
    "open"
  ]
])("where %s", (_, votes, outcome) => {
  expect(tallyOf(...votes).outcome).toBe(outcome)
})

it("a tally lists the providers of each value", () => {
  const tally = tallyOf(["a", at1], ["b", at2], ["c", at2], ["d", unable])
  expect(tally.claims).toHaveLength(3)
  expect(tally.agreed).toEqual([
    { by: "b", value: 2 },
    { by: "c", value: 2 }
  ])
  expect(tally.unable).toEqual(["d"])
})

it("a provider that has another block does not count as a denial once two have this one", () => {
  const [alone, outnumbered] = [
    tallyOf(["a", onOtherBlock], ["b", no]),
    tallyOf(["a", onOtherBlock], ["b", no], ["c", at1])
  ]
  expect(alone).toMatchObject({ denials: ["a", "b"], elsewhere: ["a"] })
  expect(outnumbered).toMatchObject({ denials: ["b"], elsewhere: ["a"] })
})

it("values agree by the ballot's own measure, and each question stands for itself", () => {
  const ballot = new Ballot<string, { readonly time: number; readonly name: string }, Voter>(
    (one, other) => one.time === other.time
  )
  ballot.vote("first", "a", yes({ time: 1, name: "x" }))
  ballot.vote("first", "b", yes({ time: 1, name: "y" }))
  ballot.vote("second", "c", yes({ time: 1, name: "z" }))
  expect(ballot.shown).toEqual([
    [
      "first",
      [
        { time: 1, name: "x" },
        { time: 1, name: "y" }
      ]
    ]
  ])
  expect(ballot.claimed.map(([question]) => question)).toEqual(["first", "second"])
  expect(ballot.tally("second").outcome).toBe("open")
})

it("the highest height that two providers have reached counts", () => {
  const heights = (...numbers: ReadonlyArray<number>) => reached(numbers, (number) => number)
  expect(heights()).toBeUndefined()
  expect(heights(9)).toBeUndefined()
  expect(heights(5, 9)).toBe(5)
  expect(heights(9, 5, 7)).toBe(7)
  expect(heights(9, 9, 7)).toBe(9)
})

it("a value that the providers do not all report is reported by none", () => {
  expect(unanimous([])).toBeUndefined()
  expect(unanimous(["0xa"])).toBe("0xa")
  expect(unanimous(["0xa", "0xa"])).toBe("0xa")
  expect(unanimous(["0xa", "0xb", "0xa"])).toBeUndefined()
})

it("the median of several values counts, of two the lower one", () => {
  expect(middle([])).toBeUndefined()
  expect(middle([7n])).toBe(7n)
  expect(middle([9n, 7n])).toBe(7n)
  expect(middle([10n, 9n, 7n])).toBe(9n)
  expect(middle([7n, 1_000n, 8n, 9n])).toBe(8n)
})
