import { expect, it } from "vitest"
import { fiatText, moneyText } from "../../src/Portal/components/values.tsx"

it("amounts have every digit, two decimals at least, and thousands in groups", () => {
  expect(moneyText(54_615_517n, "USDC", 6)).toBe("54.615517 USDC")
  expect(moneyText(25_000_000n, "USDC", 6)).toBe("25.00 USDC")
  expect(moneyText(1_234_567_500_000n, "USDC", 6)).toBe("1,234,567.50 USDC")
  expect(moneyText(1_000_123_456_789_012_345_678n, "ETH", 18)).toBe("1,000.123456789012345678 ETH")
  expect(moneyText(999n, "SHIB", 0)).toBe("999 SHIB")
  expect(moneyText(7n, "USDC.e", undefined)).toBe("7 base units of USDC.e")
})

it("dollars are rounded to cents", () => {
  expect(["308.641972530864195", "49.9", "4695.17"].map((text) => fiatText(text))).toEqual([
    "$308.64",
    "$49.90",
    "$4,695.17"
  ])
})
