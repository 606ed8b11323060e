export const amountRule =
  'must be a string of digits in the smallest unit of the token, at most 2^256 - 1, without sign or leading zero: 25 USDC are "25000000"'
const merchantRefRule = "must be a string of 1 to 128 printable characters"
export const expiresInRule = "must be an integer from 60 to 86400, in seconds"
export const urlRule = "must be an https URL of at most 2048 characters, without user info"
export const redirectRule = `${urlRule}; http is possible on localhost with a test key`

/** Invalid values, each alone, and the message about them. */
export const wrong: ReadonlyArray<readonly [field: string, rule: string, values: ReadonlyArray<unknown>]> = [
  ["merchantRef", merchantRefRule, ["", " \u00a0", "x".repeat(129), 5, null, {}]],
  ...[0x0a, 0x200b, 0x3164, 0x34f, 0xfe0f, 0xfeff, 0xe0001].map((code) => {
    const name = `U+${code.toString(16).toUpperCase().padStart(4, "0")}`
    const rule = `must not have the character ${name}, which cannot be seen: leave it out`
    const hidden = String.fromCodePoint(code)
    return ["merchantRef", rule, [`a${hidden}b`, `a${hidden}`, hidden]] as const
  }),
  [
    "amount",
    amountRule,
    ["0", "01", "-1", "+1", "25.00", "1e6", "0x10", " 1", "1 ", "", 25, null, "１", String(2n ** 256n), "1".repeat(79)]
  ],
  [
    "currency",
    "must be ETH, USDC, USDT, DAI or WBTC; MATIC is quoted, not taken",
    ["MATIC", "usdc", "usd", "", null, ["USDC"]]
  ],
  ["currency", "must be a token: POST /v1/quotes converts EUR, and its quoteId locks the rate", ["EUR"]],
  ["chain", "must be ethereum, polygon, arbitrum, optimism or base", ["Base", "solana", "", 1]],
  ["expiresIn", expiresInRule, [59, 86_401, 60.5, -1, 0, null, "60", 1e300]],
  [
    "webhookUrl",
    urlRule,
    [
      "http://example.com",
      "example.com",
      "//example.com",
      "https://",
      "https://u@example.com",
      "https://u:p@example.com",
      "https://example.com/ a",
      " https://example.com",
      "ftp://example.com",
      `https://example.com/${"x".repeat(2_029)}`,
      "",
      null
    ]
  ],
  [
    "redirectUrl",
    redirectRule,
    [
      "http://example.com",
      "/thanks",
      "javascript:alert(1)",
      "https://u:p@example.com",
      "http://localhost.example.com",
      "http://10.0.0.1",
      "http://u@localhost",
      null
    ]
  ]
]

/** Values at their bounds. */
export const right: ReadonlyArray<readonly [field: string, values: ReadonlyArray<unknown>]> = [
  ["merchantRef", ["x", "y".repeat(128), "Bestellung Nr. 5/ü – 注文", "😀".repeat(128)]],
  ["amount", ["1", String(2n ** 256n - 1n)]],
  ["expiresIn", [60, 86_400, 60.0]],
  [
    "webhookUrl",
    ["https://example.com", `https://example.com/${"x".repeat(2_028)}`, "HTTPS://EXAMPLE.COM:8443/a?b=c#d"]
  ],
  [
    "redirectUrl",
    [
      "https://example.com/thanks?order=5",
      "http://localhost:3000/x",
      "http://shop.localhost",
      "http://127.0.0.1",
      "http://[::1]:80/"
    ]
  ],
  ["metadata", [{}, { a: null }, JSON.parse('{"__proto__":{"a":1}}')]]
]
