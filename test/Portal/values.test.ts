import { expect, it } from "vitest"
import { fiatText, moneyText } from "../../src/Portal/components/values.tsx"
import { browserName } from "../../src/Portal/pages/Me.tsx"

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

const webKit = "AppleWebKit/537.36 (KHTML, like Gecko)"

it.each([
  ["Firefox on Windows", "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0"],
  ["Chrome on Linux", `Mozilla/5.0 (X11; Linux x86_64) ${webKit} Chrome/140.0.0.0 Safari/537.36`],
  ["Chrome on Android", `Mozilla/5.0 (Linux; Android 15; Pixel 9) ${webKit} Chrome/140.0.0.0 Mobile Safari/537.36`],
  [
    "Edge on Windows",
    `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${webKit} Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0`
  ],
  [
    "Safari on iPhone",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1"
  ],
  [
    "Safari on macOS",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Safari/605.1.15"
  ],
  ["curl/8.5.0", "curl/8.5.0"],
  ["unknown", ""]
])("a browser is called %s", (name, userAgent) => {
  expect(browserName(userAgent)).toBe(name)
})
