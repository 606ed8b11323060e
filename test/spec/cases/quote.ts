import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { formatUnits, parseUnits } from "viem"
import { problemsIn } from "../../lib/api.ts"
import type { Case } from "../Case.ts"
import { order, Shop, shopCase } from "../Shop.ts"

const post = (json: unknown) => Effect.flatMap(Shop, ({ ask }) => ask("POST", "/v1/quotes", { json }))

/** A quote, which must be given. */
const quote = (fields: Readonly<Record<string, unknown>> = {}) =>
  Effect.map(
    post({ fromCurrency: "USD", toCurrency: "USDC", amount: "100.00", chain: "ethereum", ...fields }),
    ({ body, status, text }) => {
      expect(status, text).toBe(201)
      return body
    }
  )

const isRefused = (fields: Readonly<Record<string, unknown>>, ...paths: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const answer = yield* post({ fromCurrency: "USD", toCurrency: "USDC", amount: "100", ...fields })
    expect([answer.status, Object.keys(problemsIn(answer))], answer.text).toEqual([400, paths])
  })

const units = (amount: string, decimals = 6) => parseUnits(amount, decimals)

const fiats = ["USD", "EUR", "GBP", "MXN"]

const tokens = [
  { symbol: "ETH", chains: ["ethereum", "arbitrum", "optimism", "base"] },
  { symbol: "USDC", chains: ["ethereum", "polygon", "arbitrum", "optimism", "base"] },
  { symbol: "USDT", chains: ["ethereum", "polygon", "arbitrum"] },
  { symbol: "DAI", chains: ["ethereum", "polygon", "arbitrum", "optimism"] },
  { symbol: "WBTC", chains: ["ethereum", "polygon", "arbitrum"] },
  { symbol: "MATIC", chains: ["polygon"] }
]

/** A token can be quoted, and asked for in a payment unless it is MATIC, on its chains and on no other. */
const supported = tokens.map(({ chains, symbol }) =>
  shopCase(
    [`2.3 ${symbol}`],
    `on ${chains.join(", ")} and on no other chain, in quotes and in payments`,
    function* ({ ask }) {
      for (const chain of ["ethereum", "polygon", "arbitrum", "optimism", "base"]) {
        const isThere = chains.includes(chain)
        const quoted = yield* post({ fromCurrency: "USD", toCurrency: symbol, amount: "500", chain })
        expect([chain, quoted.status], quoted.text).toEqual([chain, isThere ? 201 : 400])
        if (!isThere) expect(Object.keys(problemsIn(quoted))).toEqual(["chain"])
        const isPayable = isThere && symbol !== "MATIC"
        const made = yield* ask("POST", "/v1/payments", { json: order({ currency: symbol, chain }) })
        expect([chain, made.status], made.text).toEqual([chain, isPayable ? 201 : 400])
        if (!isPayable) expect(Object.keys(problemsIn(made))).toEqual(["currency"])
      }
    }
  )
)

const fields: ReadonlyArray<Case<Shop>> = [
  shopCase(
    ["2.2 id", '4.1 "POST /v1/quotes"', '4.1 "Response: a Quote object"'],
    "a quote has every field of the interface, of others chargeAmount alone, and an id of the form quote_<id>",
    function* () {
      const text = expect.any(String)
      expect(yield* quote()).toEqual({
        id: expect.stringMatching(/^quote_[A-Za-z0-9_-]{22,}$/),
        fromCurrency: "USD",
        toCurrency: "USDC",
        fromAmount: "100.00",
        toAmount: text,
        chargeAmount: text,
        rate: text,
        chain: "ethereum",
        validUntil: text,
        fees: { network: text, service: text }
      })
    }
  ),
  shopCase(
    ["2.2 fromCurrency", "2.2 toCurrency", "4.1 fromCurrency", "4.1 toCurrency", '2.3 "Fiat: USD, EUR, GBP"'],
    "required; each fiat and each token is priced in the others, and given back as asked",
    function* () {
      const symbols = [...fiats, "ETH", "USDC", "MATIC"]
      for (const fromCurrency of fiats) {
        for (const toCurrency of symbols) {
          if (fromCurrency === toCurrency) continue
          const made = yield* quote({ fromCurrency, toCurrency, amount: "900", chain: undefined })
          expect([made.fromCurrency, made.toCurrency]).toEqual([fromCurrency, toCurrency])
        }
      }
      expect(yield* quote({ fromCurrency: "ETH", toCurrency: "WBTC", amount: "10" })).toMatchObject({
        chain: "ethereum"
      })
      yield* isRefused({ fromCurrency: undefined, toCurrency: undefined }, "fromCurrency", "toCurrency")
      yield* isRefused({ fromCurrency: "INR", toCurrency: "usdc" }, "fromCurrency", "toCurrency")
      yield* isRefused({ toCurrency: "USD" }, "toCurrency")
    }
  ),
  shopCase(
    ["2.2 fromAmount", "4.1 amount", '4.1 "Request body"'],
    "required; a decimal string, given back as asked; nothing is taken that is not listed",
    function* () {
      for (const amount of ["100", "100.00", "0.5", "99999.99"]) {
        expect((yield* quote({ toCurrency: "EUR", amount })).fromAmount).toBe(amount)
      }
      yield* isRefused({ amount: undefined }, "amount")
      for (const amount of [100, "0", "-1", "1e3", "1,5", "", "01", "1.001"]) yield* isRefused({ amount }, "amount")
      yield* isRefused({ slippage: "1" }, "slippage")
    }
  ),
  shopCase(
    ["2.2 chain", "4.1 chain"],
    "given back; decided: ethereum unless given, or the only chain of the token",
    function* () {
      expect((yield* quote({ chain: "base" })).chain).toBe("base")
      expect((yield* quote({ chain: undefined })).chain).toBe("ethereum")
      expect((yield* quote({ toCurrency: "MATIC", chain: undefined })).chain).toBe("polygon")
      yield* isRefused({ chain: "solana" }, "chain")
    }
  ),
  shopCase(
    ["2.2 rate", "2.2 toAmount", '2.2 "fees.service is the processing"', '2.2 "The currency or unit"'],
    "decided: toAmount = floor(fromAmount × rate) − both fees, in toCurrency; the service takes 0.5 % of it, rounded up",
    function* () {
      for (const [amount, toCurrency, decimals, rate] of [
        ["100.00", "USDC", 6, "1"],
        ["77.77", "ETH", 18, "0.0004"],
        ["12.34", "WBTC", 8, "0.0000166666666667"],
        ["33.33", "EUR", 2, "0.909090909091"],
        ["33.33", "MXN", 2, "20"]
      ] as const) {
        const { chargeAmount, fees, rate: quotedRate, toAmount } = yield* quote({ amount, toCurrency })
        expect(quotedRate).toBe(rate)
        const gross = (units(amount, 2) * units(rate, 18)) / 10n ** BigInt(20 - decimals)
        const service = (gross * 5n + 999n) / 1000n
        expect(chargeAmount).toBe(formatUnits(gross, decimals))
        expect(fees.service).toBe(formatUnits(service, decimals))
        expect(units(toAmount, decimals)).toBe(gross - service - units(fees.network, decimals))
      }
    }
  ),
  shopCase(
    ["2.2 fees", '2.2 "fees.network is the estimated"'],
    "two strings; the network's is what a transfer costs on the chain at its gas price, and nothing between fiats",
    function* ({ chain }) {
      const { fees } = yield* quote()
      expect(fees).toEqual({ network: expect.any(String), service: expect.any(String) })
      expect((yield* quote({ toCurrency: "EUR" })).fees.network).toBe("0")
      // No one mines on this chain: its gas price stands still.
      const gasPrice = BigInt(yield* chain("ethereum").rpc<`0x${string}`>("eth_gasPrice"))
      const inUsdc = (gas: bigint) => formatUnits((gasPrice * gas * 2_500n + 10n ** 12n - 1n) / 10n ** 12n, 6)
      expect(fees.network).toBe(inUsdc(65_000n))
      const coins = yield* quote({ fromCurrency: "USD", toCurrency: "ETH" })
      expect(coins.fees.network).toBe(formatUnits(gasPrice * 21_000n, 18))
    }
  )
]

const locking: ReadonlyArray<Case<Shop>> = [
  shopCase(
    ['1 "A client can request"', "4.2 quoteId"],
    "a payment locks the rate of a quote in, once",
    function* ({ ask }) {
      const { chargeAmount, id: quoteId } = yield* quote({ amount: "49.90", chain: "base" })
      // USDC has 6 decimals.
      const amount = units(chargeAmount).toString()
      const pay = () => ask("POST", "/v1/payments", { json: order({ amount, quoteId }) })
      const first = yield* pay()
      expect([first.status, first.body.amount]).toEqual([201, amount])
      const second = yield* pay()
      expect([second.status, second.body.error.code]).toEqual([409, "QUOTE_ALREADY_USED"])
    }
  ),
  shopCase(
    ['4.2 "The handling of an"'],
    "decided: another amount, currency or chain is a 422 that says what would be valid (an expired quote: another case)",
    function* ({ ask }) {
      const { id: quoteId, toAmount } = yield* quote({ chain: "base" })
      const amount = units(toAmount).toString()
      const refusal = (fields: Readonly<Record<string, unknown>>) =>
        Effect.map(ask("POST", "/v1/payments", { json: order({ amount, quoteId, ...fields }) }), ({ body, status }) => [
          status,
          body.error.code,
          body.error.details
        ])
      const accepted = [{ currency: "USDC", amounts: [amount, "100000000"] }]
      const mismatch = [422, "QUOTE_MISMATCH", { chain: "base", accepted }]
      expect(yield* refusal({ amount: "1" })).toEqual(mismatch)
      expect(yield* refusal({ chain: "polygon" })).toEqual(mismatch)
      expect(yield* refusal({ currency: "ETH" })).toEqual(mismatch)
      expect(yield* refusal({ quoteId: "quote_x" })).toEqual([422, "QUOTE_NOT_FOUND", undefined])
    }
  )
]

export const quotes: ReadonlyArray<Case<Shop>> = [...supported, ...fields, ...locking]
