import { execFileSync, spawnSync } from "node:child_process"
import { truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Either, Schema } from "effect"
import * as fc from "fast-check"
import {
  decodeFunctionData,
  erc20Abi,
  type Hex,
  multicall3Abi,
  parseAbi,
  parseTransaction,
  recoverTransactionAddress,
  recoverTypedDataAddress,
  type TransactionSerializedEIP1559
} from "viem"
import { multicall3Address } from "../../src/Chains/rpc/contractViews.ts"
import { isWhole, type LeftOut, Plan, planFormat } from "../../src/Collect/Plan.ts"
import { feeCeiling, planProblem, type SigningLimits, totalFeeCeiling } from "../../src/Collect/planChecks.ts"
import { highestCost, planText } from "../../src/Collect/planText.ts"
import { readJsonFile } from "../../src/Collect/readJsonFile.ts"
import { signedFormat } from "../../src/Collect/Signed.ts"
import { seedOf } from "../../src/Collect/seed.ts"
import { signPlan } from "../../src/Collect/sign.ts"
import { madeText } from "../../src/commands/sweepTexts.ts"
import { RefundId } from "../../src/Domain/Ids.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { temporaryFolder } from "../lib/store.ts"
import {
  addressAt,
  customer,
  destination,
  exception,
  otherPhrase,
  phrase,
  planOf,
  refunded,
  unsignedPlan,
  usdc,
  usdt,
  withMove
} from "./plans.ts"
import { refusal } from "./refusal.ts"

const time = 1_790_000_000
const limits: SigningLimits = { allow: [], feeCeiling: feeCeiling("base"), totalFeeCeiling: totalFeeCeiling(planOf()) }
const seed = (words: string) => Either.getOrThrow(seedOf(words))
const signed = Effect.suspend(() => signPlan(planOf(), seed(phrase), limits))

const transferAbi = parseAbi([
  "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)"
])

/** Who signed a transaction, and what it does. */
const opened = async (raw: string) => {
  const serializedTransaction = raw as TransactionSerializedEIP1559
  const from = await recoverTransactionAddress({ serializedTransaction })
  const { maxFeePerGas, maxPriorityFeePerGas, nonce = 0, value = 0n, ...rest } = parseTransaction(serializedTransaction)
  return { ...rest, from, nonce, value, fee: [maxFeePerGas, maxPriorityFeePerGas] }
}

describe("a signed plan", () => {
  liveTest("has each transaction of the right sender, for each step of the fees", function* () {
    const { transactions } = yield* signed
    const found = yield* Effect.promise(() => Promise.all(transactions.map((steps) => Promise.all(steps.map(opened)))))
    const sponsor = addressAt(0, 1)
    const lower = (address: string) => address.toLowerCase()
    const gwei = 10n ** 9n
    const fees = [
      [gwei, 10n ** 6n],
      [3n * gwei, 2n * 10n ** 6n]
    ]
    expect(found.map((steps) => steps.map(({ fee }) => fee))).toEqual(found.map(() => fees))
    expect(found.flat().map(({ chainId }) => chainId)).toEqual(Array(10).fill(31337))
    const shown = found.map((steps) =>
      steps.map(({ from, gas, nonce, to, value }) => ({ from, gas, nonce, to: lower(to ?? ""), value }))
    )
    const both = (one: object) => [one, one]
    const coin = 10n ** 18n
    expect(shown).toEqual([
      both({ from: sponsor, gas: 270_000n, nonce: 11, to: lower(multicall3Address), value: 0n }),
      both({ from: sponsor, gas: 21_000n, nonce: 12, to: lower(addressAt(3)), value: 240_000_000_000_000n }),
      both({ from: addressAt(3), gas: 80_000n, nonce: 0, to: usdt, value: 0n }),
      // What a lower fee does not cost goes to the destination too.
      [
        { from: addressAt(4), gas: 21_000n, nonce: 7, to: lower(destination), value: coin + 21_000n * 2n * gwei },
        { from: addressAt(4), gas: 21_000n, nonce: 7, to: lower(destination), value: coin }
      ],
      // A refund is exact at each.
      both({ from: addressAt(5), gas: 21_000n, nonce: 0, to: lower(customer), value: coin / 4n })
    ])
    const [, , [transfer] = []] = found
    expect(decodeFunctionData({ abi: erc20Abi, data: transfer?.data ?? "0x" })).toEqual({
      functionName: "transfer",
      args: [destination, 9_000_000n]
    })
  })

  liveTest("has the authorizations of their holders, as EIP-3009 asks, in the sponsor's batch", function* () {
    const { authorizations, transactions } = yield* signed
    const batch = yield* Effect.promise(() => opened(transactions[0]?.[0] ?? ""))
    const { args } = decodeFunctionData({ abi: multicall3Abi, data: batch.data ?? "0x" })
    const calls = args?.[0] as ReadonlyArray<{ target: Hex; allowFailure: boolean; callData: Hex }>
    expect(calls.map(({ allowFailure, target }) => [target, allowFailure])).toEqual(Array(3).fill([usdc, true]))
    const holders: Array<unknown> = []
    const nonces = new Set<string>()
    for (const [i, { callData }] of calls.entries()) {
      const [from, to, value, validAfter, validBefore, nonce, v, r, s] = decodeFunctionData({
        abi: transferAbi,
        data: callData
      }).args
      const signature = `${r}${s.slice(2)}${v.toString(16)}` as Hex
      expect(signature).toBe(authorizations[i])
      const signer = yield* Effect.promise(() =>
        recoverTypedDataAddress({
          // Written out as the standard has it: https://eips.ethereum.org/EIPS/eip-3009
          domain: { name: "USD Coin", version: "2", chainId: 31337, verifyingContract: usdc },
          types: {
            TransferWithAuthorization: [
              { name: "from", type: "address" },
              { name: "to", type: "address" },
              { name: "value", type: "uint256" },
              { name: "validAfter", type: "uint256" },
              { name: "validBefore", type: "uint256" },
              { name: "nonce", type: "bytes32" }
            ]
          },
          primaryType: "TransferWithAuthorization",
          message: { from, to, value, validAfter, validBefore, nonce },
          signature
        })
      )
      expect([signer, validAfter, validBefore]).toEqual([from, 0n, 1_790_086_400n])
      holders.push([from, to, value])
      nonces.add(nonce)
    }
    expect(holders).toEqual([
      [addressAt(0), destination, 1_500_000n],
      [addressAt(1), destination, 2_500_000n],
      [addressAt(2), customer, 700_000n]
    ])
    expect(nonces.size).toBe(3)
  })
})

describe("a plan is refused", () => {
  const text = JSON.stringify(planOf())
  const decode = Schema.decodeUnknownEither(Schema.parseJson(Plan), { onExcessProperty: "error" })

  it("with any character changed, left out or added", () => {
    expect(isWhole(Either.getOrThrow(decode(text)))).toBe(true)
    const place = fc.nat(text.length - 1)
    const isRefused = (changed: string) => {
      const plan = decode(changed)
      // White space between its parts is none of it.
      return changed === text || Either.isLeft(plan) || !isWhole(plan.right)
    }
    const graphic = fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code))
    const refuses = (changed: string) => expect(isRefused(changed), changed).toBe(true)
    const replaced = fc.property(place, graphic, (at, letter) => {
      refuses(text.slice(0, at) + letter + text.slice(at + 1))
    })
    const removed = fc.property(place, (at) => {
      refuses(text.slice(0, at) + text.slice(at + 1))
    })
    const added = fc.property(place, graphic, (at, letter) => {
      refuses(text.slice(0, at) + letter + text.slice(at))
    })
    void fc.assert(replaced, { numRuns: 500 })
    void fc.assert(removed, { numRuns: 100 })
    void fc.assert(added, { numRuns: 100 })
  })

  liveTest("by another seed, or another passphrase, and nothing is signed", function* () {
    const sponsor = addressAt(0, 1)
    expect(yield* refusal(signPlan(planOf(), seed(otherPhrase), limits))).toMatch(
      new RegExp(`^The seed is not the plan's: m/44'/60'/0'/1/0 is 0x\\w{40}, and the plan has ${sponsor} there`)
    )
    const passphrase = Either.getOrThrow(seedOf(phrase, "more"))
    expect(yield* refusal(signPlan(planOf(), passphrase, limits))).toContain("The seed is not the plan's")
    expect(yield* refusal(signPlan(withMove(1, { index: 6 }), seed(phrase), limits))).toContain(
      `m/44'/60'/0'/0/6 is ${addressAt(6)}, and the plan has ${addressAt(1)} there`
    )
  })

  const { moves, sponsor, tokens } = unsignedPlan()
  const [token, ...others] = tokens
  const zero = `0x${"0".repeat(40)}`
  const usdcOfBase = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
  const live = { mode: "live", chainId: 8453 } as const
  const gwei = 10n ** 9n
  const fee = (most: bigint, tip = "1") => ({ most: `${most}`, tip })
  const withFees = (first: bigint, ...rest: ReadonlyArray<bigint>) =>
    planOf({ fees: [fee(first), ...rest.map((one) => fee(one))] })
  const withGas = (batch: number, funding = 21_000) => planOf({ gas: { batch: `${batch}`, funding: `${funding}` } })
  const withTokens = (edit: (one: (typeof tokens)[number], place: number) => object) =>
    planOf({ tokens: tokens.map((one, place) => ({ ...one, ...edit(one, place) })) })
  /** A plan for Base itself, with its USDC but for what is changed. */
  const publicPlan = (over: Partial<Plan["tokens"][number]>) =>
    planOf({
      ...live,
      moves: moves.slice(0, 3).map((move) => ({ ...move, token: over.symbol ?? "USDC" })),
      tokens: [
        {
          ...{ symbol: "USDC", contract: usdcOfBase, decimals: 6 },
          ...{ domain: { name: "USD Coin", version: "2" }, ...over }
        }
      ]
    })
  const asRefunds = moves.map((move, i) => ({
    ...move,
    to: customer,
    refund: RefundId.make(`${refunded[0].slice(0, -1)}${i}`)
  }))
  const unknown = {
    tokens: [{ ...token, symbol: "__proto__" }],
    moves: moves.map((move) => ({ ...move, token: "__proto__" }))
  }
  const noGas = moves.slice(0, 3).map((move) => ({ ...move, gas: "0" }))
  const twice = [...moves, { ...moves[5], index: 6, address: addressAt(6) }] as Plan["moves"]
  const cases: ReadonlyArray<readonly [string, Plan, string, Partial<SigningLimits>?]> = [
    [
      "whose digest does not fit",
      { ...planOf(), destination: customer },
      "was changed after it was made: its digest does not fit"
    ],
    ["whose words do not fit", { ...planOf(), words: "zoo zoo zoo zoo zoo zoo" }, "The plan was changed"],
    [
      "to an address of its own",
      planOf({ destination: addressAt(4) }),
      `${addressAt(4)} is one of the plan's own addresses`
    ],
    ["to its sponsor", planOf({ destination: sponsor.address.toLowerCase() }), "is one of the plan's own addresses"],
    ["to the zero address", planOf({ destination: zero }), "The plan sends to the zero address"],
    ["to a token of it", planOf({ destination: usdt }), `${usdt} is a contract`],
    ["to a token of the public network", planOf({ ...live, destination: usdcOfBase }), "is a contract"],
    ["to Multicall3", planOf({ destination: multicall3Address }), "is a contract"],
    ["with a refund to the zero address", withMove(2, { to: zero }), "The plan sends to the zero address"],
    [
      "to an address that is not allowed",
      planOf(),
      `${destination} is not in sweep.allow, nor given with --allow`,
      { allow: [customer] }
    ],
    [
      "with a collected move to another address than the destination",
      withMove(0, { to: customer }),
      "is no refund, and goes elsewhere than to the plan's destination",
      { allow: [destination, customer] }
    ],
    [
      "whose moves are all called refunds, to an address that is not allowed",
      planOf({ moves: asRefunds }),
      `The refund of ${asRefunds[0]?.refund} goes to an address that is not in sweep.allow, nor given with --allow or --refund-to`,
      { allow: [destination], refundTo: [customer.slice(-6)] }
    ],
    ["with other decimals", publicPlan({ decimals: 9 }), "The plan counts USDC in 9 decimals, and on Base it has 6"],
    ["with another name for a token", publicPlan({ symbol: "DAI", decimals: 18 }), "and it is the USDC of Base"],
    ["with an unknown token", planOf(unknown as Partial<Plan>), "__proto__, which is no token that tilld takes"],
    ["that pays a refund twice", planOf({ moves: twice }), "pays one refund twice"],
    [
      "with two tokens of one name",
      withTokens(() => ({ symbol: "USDC" })),
      "two currencies with the symbol or the contract of USDC"
    ],
    [
      "with a token that is called as the coin",
      withTokens(({ symbol }, place) => ({ symbol: place === 0 ? symbol : "ETH" })),
      "two currencies with the symbol or the contract of ETH"
    ],
    [
      "with one contract under two names",
      withTokens(() => ({ contract: usdc })),
      "two currencies with the symbol or the contract of USDT"
    ],
    ["with a token that no move uses", planOf({ moves: moves.slice(0, 3) }), "names USDT, which no move uses"],
    [
      "whose fees are absurd in total",
      planOf({ gas: { batch: "2000000", funding: "21000" }, fees: [fee(100n * gwei)] }),
      "The plan's fees are 0.235300000000009 ETH at most in total, above 0.008: make a new plan when gas is cheaper, or say --max-total-fee 0.235300000000009"
    ],
    [
      "with more coin than gas costs",
      withMove(3, { funding: "240000000001001" }),
      "gets more coin from the sponsor than it uses"
    ],
    [
      "with a nonce twice",
      withMove(5, { address: addressAt(4), index: 4, nonce: 7 }),
      `nonce 7 of ${addressAt(4)} twice`
    ],
    [
      "that is a week old",
      planOf(),
      "as of 2026-09-21T14:13:20.000Z, and the clock of this machine says 2026-09-28T14:13:21.000Z: it is more than 7 days old",
      { now: time + 7 * 86_400 + 1 }
    ],
    [
      "whose signed transfers have ended",
      planOf(),
      "signed transfers end at 2026-09-22T14:13:20.000Z, and the clock of this machine says 2026-09-22T14:13:20.000Z",
      { now: time + 86_400 }
    ],
    ["that is ahead of the clock", planOf(), "it is more than an hour ahead", { now: time - 3_601 }],
    ["of another network", planOf({ chainId: 1 }), "The plan is for Base (test, chain id 1), but that chain id is"],
    [
      "of the live network",
      planOf({ chainId: 8453 }),
      "The plan is for Base (test, chain id 8453), but that chain id is"
    ],
    [
      "with a fee above the ceiling",
      withFees(1n, 100n * gwei + 1n),
      "highest fee is 100.000000001 gwei for a unit of gas, above 100: make a new plan when gas is cheaper, or say --fee-ceiling-gwei 100.000000001"
    ],
    ["with fees that fall", withFees(2n, 1n), "fees do not rise"],
    ["with a tip above its fee", planOf({ fees: [fee(1n, "2")] }), "has a tip above its fee"],
    [
      "with a line in a token's name",
      planOf({ tokens: [{ symbol: `USDC\nTo ${customer}`, contract: usdc, decimals: 6 }, ...others] }),
      'The plan has a name that is none: "USDC\\nTo'
    ],
    [
      "with a line in an exception's name",
      withMove(2, { exception: `${exception}\nTo` }),
      "The plan has a name that is none"
    ],
    ["with another coin", planOf({ coin: "USDC" }), 'The coin of base is not "USDC"'],
    ["that moves nothing", planOf({ moves: [] }), "The plan moves nothing"],
    ["with more gas than a transfer takes", withMove(3, { gas: "2000001" }), "Move 4 of the plan, from"],
    [
      "with less gas than coin takes",
      withMove(4, { gas: "20999" }),
      `The plan has 20999 gas where ${addressAt(4)} needs 21000: make one without the provider that is wrong`
    ],
    // 26 bytes of its data, and 42 that are zero.
    ["with less gas than a token takes", withMove(3, { gas: "22459", funding: "1" }), "needs 22460"],
    ["with less gas than a funding takes", withGas(60_000, 1), `has 1 gas where ${sponsor.address} needs 21000`],
    [
      "with less gas than a batch takes",
      planOf({ gas: { batch: "21000", funding: "21000" }, tokens: tokens.slice(0, 1), moves: noGas }),
      `has 21000 gas where ${sponsor.address} needs `
    ],
    ["with more gas than a batch takes", withGas(2_000_001), "more than 2000000 gas"],
    ["with more gas than a funding takes", withGas(60_000, 2_000_001), "more than 2000000 gas"],
    ["without a nonce", planOf({ moves: moves.map(({ nonce: _, ...move }) => move) }), "Move 4 of the plan"],
    ["of coin with a token", withMove(4, { token: "USDT" }), "Move 5 of the plan"],
    ["of a token that it does not have", withMove(0, { token: "DAI" }), "names no token"],
    ["with authorizations that a token lacks", withMove(0, { token: "USDT" }), "is of a token without authorizations"],
    ["with authorizations of months", planOf({ validBefore: time + 32 * 86_400 }), "would be valid until 2026-"]
  ]
  it.effect.each(cases)("%s", ([, plan, message, over]) =>
    Effect.gen(function* () {
      const used = { ...limits, ...over }
      expect(planProblem(plan, used)).toContain(message)
      const bytes = seed(phrase)
      expect(yield* refusal(signPlan(plan, bytes, used))).toContain(message)
      expect(bytes).toEqual(new Uint8Array(64))
    })
  )

  it("not where it is in order: to an allowed address with a refund to a customer, and with a higher ceiling", () => {
    const allowing = { ...limits, allow: [usdc, destination.toLowerCase()] }
    for (const refundTo of [customer, customer.slice(2)]) {
      expect(planProblem(planOf(), { ...allowing, refundTo: [refundTo] })).toBeUndefined()
    }
    expect(planProblem(planOf(), { ...allowing, allow: [customer, destination] })).toBeUndefined()
    const plain = planOf({ moves: unsignedPlan().moves.slice(3), tokens: unsignedPlan().tokens.slice(1) })
    expect(planProblem(plain, { ...limits, now: time + 7 * 86_400 })).toBeUndefined()
    for (const now of [time + 86_399, time - 3_600]) {
      expect(planProblem(planOf(), { ...limits, now })).toBeUndefined()
    }
    expect(planProblem(publicPlan({}), limits)).toBeUndefined()
    const dear = { ...limits, feeCeiling: 100_000_000_001n, totalFeeCeiling: 10n ** 18n }
    expect(planProblem(withFees(100n * gwei + 1n), dear)).toBeUndefined()
    expect(planProblem(planOf({ tokens: [token ?? expect.fail(), ...others] }), limits)).toBeUndefined()
    const total = (chain: Plan["chain"]) => totalFeeCeiling(planOf({ chain })) / 10n ** 15n
    expect([total("ethereum"), total("polygon"), total("base")]).toEqual([80n, 3_200n, 8n])
    expect([feeCeiling("ethereum"), feeCeiling("polygon"), feeCeiling("base")].map((wei) => wei / 10n ** 9n)).toEqual([
      1_000n,
      20_000n,
      100n
    ])
  })
})

describe("a file is no plan", () => {
  const { moves, sponsor, tokens, ...rest } = planOf()
  const [move = expect.fail(), ...others] = moves
  const withFirst = (over: object) => ({ moves: [{ ...move, ...over }, ...others] })
  const whole = (from: number, to: number) => `must be a whole number from ${from} to ${to}`
  const units = "must be a number of base units below 2^256"
  const cases: ReadonlyArray<readonly [at: string, file: object, must: string]> = [
    ["format", { format: signedFormat, authorizations: [], plan: {} }, `must be "${planFormat}"`],
    ["chainId", { chainId: 1.5 }, whole(1, 2 ** 53 - 1)],
    ["chainId", { chainId: 2 ** 53 }, whole(1, 2 ** 53 - 1)],
    ["account", { account: 2 ** 31 }, whole(0, 2 ** 31 - 1)],
    ["block.time", { block: { ...rest.block, time: 2 ** 33 } }, whole(0, 2 ** 33 - 1)],
    ["validBefore", { validBefore: 2 ** 33 }, whole(0, 2 ** 33 - 1)],
    ["sponsor.nonce", { sponsor: { ...sponsor, nonce: 2 ** 48 } }, whole(0, 2 ** 48 - 1)],
    ["moves.0.amount", withFirst({ amount: `${2n ** 256n}` }), units],
    ["moves.0.funding", withFirst({ funding: "-1" }), units],
    ["moves.0.refund", withFirst({ refund: "customer" }), "must be the id of a refund"],
    ["moves.0.exception", withFirst({ exception: "customer" }), "must be the id of an exception"],
    ["moves.0.index", withFirst({ index: 2 ** 31 }), whole(0, 2 ** 31 - 1)],
    ["tokens.0.decimals", { tokens: [{ ...tokens[0], decimals: 37 }] }, whole(0, 36)],
    ["moves", { moves: Array(5_001).fill(move) }, "must have 5000 entries at most"],
    ["fees", { fees: Array(11).fill(rest.fees[0]) }, "must have 10 entries at most"],
    [`${"x".repeat(30)}\\u000aTo`, { [`${"x".repeat(30)}\nTo`]: 1 }, "is unexpected"]
  ]
  it.scoped.each(cases)("with %s out of bounds", ([at, over, must]) =>
    Effect.gen(function* () {
      const path = join(yield* temporaryFolder, "plan.json")
      writeFileSync(path, JSON.stringify({ ...rest, sponsor, tokens, moves, ...over }))
      const message = yield* refusal(readJsonFile(path, Plan, "a plan"))
      expect(message).toContain(`is not a plan of this version of tilld: ${at} ${must}`)
      expect(message).not.toContain("\n")
      expect(message.length - path.length).toBeLessThan(260)
    })
  )
})

/** Why files are no plan, as another process says it, which is ended where it waits for ever. */
const refusalsElsewhere = (...paths: ReadonlyArray<string>) => {
  const module = (file: string) => new URL(`../../${file}`, import.meta.url).href
  const code = `import { Effect } from "effect"
    import { Plan } from "${module("src/Collect/Plan.ts")}"
    import { readJsonFile } from "${module("src/Collect/readJsonFile.ts")}"
    const one = (path) => Effect.flip(readJsonFile(path, Plan, "a plan"))
    const all = await Effect.runPromise(Effect.forEach(process.argv.slice(1), one, { concurrency: 1 }))
    process.stdout.write(JSON.stringify(all.map(({ message }) => message)))`
  const args = ["--import", module("scripts/typescript.mjs"), "--input-type=module", "--eval", code, ...paths]
  const { signal, stderr, stdout } = spawnSync(process.execPath, args, {
    ...{ timeout: 30_000, killSignal: "SIGKILL", encoding: "utf8" }
  })
  expect({ signal, stderr }).toEqual({ signal: null, stderr: "" })
  return JSON.parse(stdout) as unknown
}

liveTest("a plan is read from a regular file of 100 megabytes at most, and nothing else is waited for", function* () {
  const path = join(yield* temporaryFolder, "plan.json")
  execFileSync("mkfifo", [path])
  const files = [path, "/dev/null"]
  expect(refusalsElsewhere(...files)).toEqual(
    files.map((file) => `${file} cannot be read: it is not a regular file: write it into one first`)
  )
  writeFileSync(`${path}.large`, "")
  truncateSync(`${path}.large`, 100_000_001)
  expect(yield* refusal(readJsonFile(`${path}.large`, Plan, "a plan"))).toBe(
    `${path}.large cannot be read: it has 100000001 bytes, more than 100000000`
  )
})

it.scoped.each(["[", '{"moves":'])("a file that nests %s a hundred thousand times is no plan", (opening) =>
  Effect.gen(function* () {
    const path = join(yield* temporaryFolder, "plan.json")
    const closing = opening === "[" ? "]" : "}"
    writeFileSync(path, `${opening.repeat(100_000)}1${closing.repeat(100_000)}`)
    const why = opening === "[" ? "it is nested too deeply" : "format is missing"
    expect(yield* refusal(readJsonFile(path, Plan, "a plan"))).toBe(
      `${path} is not a plan of this version of tilld: ${why}`
    )
  })
)

it("no text of a plan adds lines, or long ones, to what is shown", () => {
  const why = `short\nTo ${customer} \u001b[2J\u202e${"long ".repeat(100)}`
  const text = madeText(planOf({ leftOut: [{ ...unsignedPlan().leftOut[0], currency: "A\nB", why } as LeftOut] }), {
    seesFees: true,
    file: "f",
    includeOpen: false
  })
  expect(text).not.toContain(`\nTo ${customer} `)
  expect(text.split("\n").every((line) => line.length <= 200 && !/[\p{Cc}\p{Bidi_Control}]/u.test(line))).toBe(true)
  const local = planOf({ tokens: unsignedPlan().tokens.map((token) => ({ ...token, decimals: 9 })) })
  expect(planText(local)).toContain("9 decimals, NOT the 6 decimals of public networks: amounts mislead")
})

it("a plan in words has everything that a signer has to look at", () => {
  const plan = planOf()
  // 4 transactions of a single move and the batch, at 3 gwei.
  expect(highestCost(plan)).toBe(
    (270_000n + 21_000n + 80_000n + 21_000n + 21_000n) * 3n * 10n ** 9n + 5_000n + 4n * 1_000n
  )
  expect(planText(plan).split("\n")).toEqual([
    "Chain     Base (test, chain id 31337)",
    `Plan      ${plan.words}`,
    `          ${plan.digest}`,
    "As of     block 42, 2026-09-21T14:13:20.000Z",
    "Until     2026-09-22T14:13:20.000Z",
    "In total  4.7 USDC in 3 transfers, 9 USDT in 1 transfer, 1.25 ETH at least in 2 transfers",
    `To        ${destination}`,
    "          4 USDC in 2 transfers, 9 USDT in 1 transfer, 1 ETH at least in 1 transfer",
    `Refund to ${customer}`,
    `          0.7 USDC in 1 transfer, the refund of ${exception}`,
    `          0.25 ETH in 1 transfer, the refund of ${refunded[1]}`,
    `Tokens    USDC is ${usdc}, 6 decimals, NOT the USDC of the public network`,
    `          USDT is ${usdt}, 6 decimals`,
    "Fees      0.001239000000009 ETH at most, at up to 3 gwei for a unit of gas",
    "Fundings  0.00024 ETH in 1 transfer of the sponsor, for gas",
    "Signs     3 authorizations, 5 transactions",
    "Left out  1 balance"
  ])
})
