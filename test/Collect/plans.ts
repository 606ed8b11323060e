import { toHex } from "viem"
import { mnemonicToAccount } from "viem/accounts"
import { digested, type Plan, planFormat, type Unsigned } from "../../src/Collect/Plan.ts"
import { RefundId } from "../../src/Domain/Ids.ts"

/** The phrase that every development tool publishes, which no money is on. */
export const phrase = "test test test test test test test test test test test junk"
export const otherPhrase = "legal winner thank year wave sausage worth useful legal winner thank yellow"

export const addressAt = (index: number, branch: 0 | 1 = 0) =>
  mnemonicToAccount(phrase, { path: `m/44'/60'/0'/${branch}/${index}` }).address

export const destination = "0x52908400098527886E0F7030069857D2E4169EE7"
export const customer = "0x8617E340B3D01FA5F11F306F4090FD50E238070D"
export const usdc = "0x1111111111111111111111111111111111111111"
export const usdt = "0x2222222222222222222222222222222222222222"

/** Refunds that it pays: of an exception, and one that was noted. */
export const refunded = [
  RefundId.make("ref_aaaaaaaaaaaaaaaaaaaaaa"),
  RefundId.make("ref_bbbbbbbbbbbbbbbbbbbbbb")
] as const
export const exception = "exc_aaaaaaaaaaaaaaaaaaaaaa"

/** Where a move is from; without a funding. */
const at = (index: number) => ({ address: addressAt(index), index, funding: "0" })

/** A plan with every way: two authorizations, a funded transfer, coin, and a refund by each way. */
export const unsignedPlan = (over: Partial<Unsigned> = {}): Unsigned => ({
  format: planFormat,
  chain: "base",
  mode: "test",
  chainId: 31337,
  account: 0,
  coin: "ETH",
  block: { number: 42, hash: `0x${"ab".repeat(32)}`, time: 1_790_000_000 },
  destination,
  tokens: [
    { symbol: "USDC", contract: usdc, decimals: 6, domain: { name: "USD Coin", version: "2" } },
    { symbol: "USDT", contract: usdt, decimals: 6 }
  ],
  moves: [
    { way: "authorization", token: "USDC", ...at(0), amount: "1500000", gas: "70000" },
    { way: "authorization", token: "USDC", ...at(1), amount: "2500000", gas: "70000" },
    {
      way: "authorization",
      token: "USDC",
      ...at(2),
      amount: "700000",
      gas: "70000",
      ...{ to: customer, refund: refunded[0], exception }
    },
    { way: "token", token: "USDT", ...at(3), amount: "9000000", gas: "80000", funding: "240000000000000", nonce: 0 },
    { way: "native", ...at(4), amount: "1000000000000000000", gas: "21000", nonce: 7 },
    { way: "native", ...at(5), amount: "250000000000000000", gas: "21000", nonce: 0, to: customer, refund: refunded[1] }
  ],
  leftOut: [{ address: addressAt(9), index: 9, currency: "USDC", decimals: 6, amount: "3", why: "below its cost" }],
  fees: [
    { most: "1000000000", tip: "1000000" },
    { most: "3000000000", tip: "2000000" }
  ],
  gas: { batch: "60000", funding: "21000" },
  dataFees: { batch: "5000", single: "1000" },
  validBefore: 1_790_000_000 + 86_400,
  sponsor: { address: addressAt(0, 1), nonce: 11, needsWei: "1", hasWei: "2" },
  ...over
})

export const planOf = (over: Partial<Unsigned> = {}): Plan => digested(unsignedPlan(over))

/** The plan with one move changed. */
export const withMove = (place: number, over: Partial<Plan["moves"][number]>): Plan =>
  planOf({ moves: unsignedPlan().moves.map((move, i) => (i === place ? { ...move, ...over } : move)) })

/** The words of a seed next to each other, and the private keys that a plan of it needs. */
export const secretsOf = (words: string) => {
  const keys = [0, 1, 2, 3, 4, 5].map((addressIndex) => {
    const { privateKey } = mnemonicToAccount(words, { addressIndex }).getHdKey()
    return toHex(privateKey ?? new Uint8Array()).slice(2)
  })
  return [words.split(" ").slice(-3).join(" "), ...keys]
}
