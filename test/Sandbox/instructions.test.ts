import { expect, it } from "vitest"
import { instructions, overview, type Sandbox } from "../../src/commands/runSandbox.ts"
import { localTokens } from "../../src/Sandbox/LocalChain.ts"

const { DAI, USDC } = localTokens

const sandbox: Sandbox = {
  url: "http://127.0.0.1:8080",
  portal: "http://127.0.0.1:8080/portal/login/x",
  config: "config/sandbox.toml",
  apiKey: "svc_test_key",
  program: "node dist/tilld.js",
  chains: [
    { name: "polygon", url: "http://127.0.0.1:8546", chainId: 2, tokens: { USDC, DAI } },
    { name: "base", url: "http://127.0.0.1:8549", chainId: 5, tokens: { USDC } }
  ],
  certificates: { certificate: "localhost.pem", key: "localhost-key.pem" }
}

it("the sandbox lists of each chain what payments take there, and MATIC as what is only quoted", () => {
  expect(overview(sandbox).split("\n").slice(0, 2)).toEqual([
    "  polygon   http://127.0.0.1:8546   chain id 2   USDC DAI (MATIC is quoted, not taken)",
    "  base      http://127.0.0.1:8549   chain id 5   ETH USDC"
  ])
})

it("the sandbox shows the commands that pay the invoice of its example, and forward its events", () => {
  expect(instructions(sandbox)).toContain("\n  node dist/tilld.js sandbox pay inv_…\n")
  expect(instructions(sandbox)).toContain("\n  TILLD_API_KEY=svc_test_key node dist/tilld.js listen --api-url ")
})
