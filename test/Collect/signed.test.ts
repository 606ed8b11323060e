/** Whether a signed file is what its plan says, and of this configuration: told before a chain is asked. */
import { expect, it } from "@effect/vitest"
import { Array as Arr, Effect, Either } from "effect"
import {
  parseTransaction,
  serializeSignature,
  serializeTransaction,
  type TransactionSerializedEIP1559,
  toHex
} from "viem"
import { HDKey } from "viem/accounts"
import type { ChainAccess } from "../../src/Chains/providers/chainAccess.ts"
import type { Plan } from "../../src/Collect/Plan.ts"
import { checksumOf, type Signed, signatureOf, verifySigned } from "../../src/Collect/Signed.ts"
import { seedOf } from "../../src/Collect/seed.ts"
import { signPlan } from "../../src/Collect/sign.ts"
import { foreignProblem } from "../../src/Collect/standing.ts"
import type { Signature } from "../../src/Collect/transactions.ts"
import type { ChainSettings } from "../../src/Settings.ts"
import { testChain } from "../lib/settings.ts"
import { addressAt, customer, otherPhrase, phrase, planOf, usdc, usdt, withMove } from "./plans.ts"
import { refusal } from "./refusal.ts"

const seed = (words = phrase) => Either.getOrThrow(seedOf(words))
const signed = (plan: Plan) => signPlan(plan, seed(), { allow: [], feeCeiling: 10n ** 15n })

/** The same text with another digit before its last two. */
const changed = (text: string): string => `${text.slice(0, -3)}${text.at(-3) === "1" ? "2" : "1"}${text.slice(-2)}`

/** The same signature with the higher of its two s, by which anyone finds the same signer. */
const mirrored = ({ r, s, yParity }: Signature): Signature => ({
  ...{ r, yParity: 1 - yParity },
  s: toHex(0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n - BigInt(s), { size: 32 })
})
const mirrorTransaction = (raw: string): string => {
  const { r = "0x", s = "0x", yParity = 0, ...transaction } = parseTransaction(raw as TransactionSerializedEIP1559)
  return serializeTransaction(transaction, mirrored({ r, s, yParity }))
}

const placing =
  (place: number, edit: (steps: Signed["transactions"][number]) => Signed["transactions"][number]) =>
  ({ transactions }: Signed) => ({ transactions: transactions.map((steps, i) => (i === place ? edit(steps) : steps)) })

const ofBatch = `Transaction 1, of ${addressAt(0, 1)},`
const changes: ReadonlyArray<
  readonly [what: string, edit: (all: Signed, other: Signed) => Partial<Signed>, said: string]
> = [
  ["another destination", ({ plan }) => ({ plan: { ...plan, destination: customer } }), "The digest"],
  ["a byte of a transaction", placing(0, ([raw, ...rest]) => [changed(raw), ...rest]), ofBatch],
  // Whatever it is, it is none of the plan's.
  ["one more step of a transaction", placing(0, (steps) => [...steps, steps[0]]), ofBatch],
  [
    "one transaction less",
    ({ transactions }) => ({ transactions: transactions.slice(1) }),
    "The number of transactions"
  ],
  [
    "a transaction of another plan",
    (all, { transactions: [, , transfer] }) => placing(2, (own) => transfer ?? own)(all),
    `Transaction 3, of ${addressAt(3)},`
  ],
  // No node takes one with a high s, nor does a token.
  ["a transaction's high s", placing(1, (steps) => Arr.map(steps, mirrorTransaction)), `Transaction 2, of`],
  [
    "a byte of an authorization",
    ({ authorizations: [raw = "", ...rest] }) => ({ authorizations: [changed(raw), ...rest] }),
    `The authorization of ${addressAt(0)}`
  ],
  [
    "an authorization's high s",
    ({ authorizations }) => ({
      authorizations: authorizations.map((raw) => serializeSignature(mirrored(signatureOf(raw))))
    }),
    `The authorization of ${addressAt(0)}`
  ],
  [
    "one authorization less",
    ({ authorizations }) => ({ authorizations: authorizations.slice(1) }),
    "The number of authorizations"
  ]
]

it.effect.each(changes)("with %s is refused, also where its checksum was made anew", ([, edit, said]) =>
  Effect.gen(function* () {
    const all = yield* signed(planOf())
    expect(yield* refusal(verifySigned(all))).toBe("nothing was refused")
    const edited = { ...all, ...edit(all, yield* signed(planOf({ destination: customer }))) }
    expect(yield* refusal(verifySigned({ ...edited, checksum: checksumOf(edited) }))).toContain(`${said}`)
    const first = edited.plan === all.plan ? "Something" : "The digest"
    expect(yield* refusal(verifySigned(edited))).toContain(`${first} in the signed file is not what its plan says`)
  })
)

const tokens: ChainSettings["tokens"] = [
  { symbol: "USDC", address: usdc, decimals: 6 },
  { symbol: "USDT", address: usdt, decimals: 6 }
]
const withToken = (place: number, over: object) => ({
  tokens: tokens.map((one, i) => (i === place ? { ...one, ...over } : one))
})
const isNot = (contract: string, symbol: string) =>
  `${contract} is not the ${symbol} of base.test in this configuration: nothing was sent.`
const foreign: ReadonlyArray<
  readonly [what: string, over: Partial<ChainSettings>, said: string | undefined, plan?: Plan, words?: string]
> = [
  ["none", {}, undefined],
  [
    "another chain id",
    { chainId: 8453 },
    "The plan is for chain 31337, and base.test is chain 8453: nothing was sent."
  ],
  ["another contract", withToken(0, { address: customer.toLowerCase() }), isNot(usdc, "USDC")],
  ["other decimals", withToken(0, { decimals: 18 }), isNot(usdc, "USDC")],
  ["other decimals of the last token", withToken(1, { decimals: 5 }), isNot(usdt, "USDT")],
  [
    "two tokens exchanged",
    { tokens: tokens.map((one, i) => ({ ...one, address: i === 0 ? usdt : usdc })) },
    isNot(usdc, "USDC")
  ],
  ["no such token", { tokens: tokens.slice(0, 1) }, isNot(usdt, "USDT")],
  ["another seed", {}, `${addressAt(0, 1)} is of another wallet`, planOf(), otherPhrase],
  ["another index", {}, `${addressAt(1)} is of another wallet`, withMove(1, { index: 6 })]
]

for (const [what, over, said, plan = planOf(), words = phrase] of foreign) {
  it(`a plan is of another configuration by ${what}`, () => {
    const chain = testChain({ chain: "base", chainId: 31_337, tokens, ...over })
    const { publicExtendedKey } = HDKey.fromMasterSeed(seed(words)).derive("m/44'/60'/0'")
    const found = foreignProblem({ chain } as ChainAccess, plan, publicExtendedKey)
    if (said === undefined) expect(found).toBeUndefined()
    else expect(found).toContain(said)
  })
}
