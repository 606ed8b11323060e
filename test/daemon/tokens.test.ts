import { readFileSync, writeFileSync } from "node:fs"
import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import { confirmations, localChain, makeHome, pay, serveHere } from "../lib/daemon.ts"
import { makeInbox } from "../lib/inbox.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { tilld } from "../lib/tilld.ts"

// The operator changes the tokens while payments ask for them.

const path = "/hook"
const order = { chain: "optimism", currency: "USDC", amount: "25000000" } as const
const section = "chains.optimism.test.tokens.USDC"

/** A shop that takes USDC; DAI is on the chain, and no one has configured it. `configure` writes the USDC of the next start. */
const shop = Effect.gen(function* () {
  const chain = yield* localChain("optimism")
  const inbox = yield* makeInbox()
  const { DAI, USDC } = chain.tokens
  if (DAI === undefined || USDC === undefined) return yield* Effect.dieMessage("the chain has no DAI and USDC")
  const home = yield* makeHome({
    chains: new Map([["optimism", { ...chain, tokens: { USDC } }]]),
    caFile: inbox.caFile
  })
  const given = readFileSync(home.config, "utf8")
  const configure = (address?: string) => {
    const line = address === undefined ? "" : `USDC = { address = "${address}", decimals = ${USDC.decimals} }`
    writeFileSync(home.config, given.replace(/^USDC = .*$/m, line))
  }
  const command = (...args: ReadonlyArray<string>) => tilld([...args, "--config", home.config])
  /** A start, a check and the doctor all refuse, and name what is missing. */
  const isRefused = Effect.gen(function* () {
    const need = `${section}: 1 open payment needs the contract ${USDC.address}`
    const remedy = "tilld payments abandon --chain optimism --mode test --token USDC"
    for (const [code, stream, ...args] of [
      [2, "stderr", "serve"],
      [2, "stderr", "config", "check"],
      [1, "stdout", "doctor"]
    ] as const) {
      const ended = yield* command(...args)
      expect(ended.code).toBe(code)
      expect(ended[stream]).toContain(need)
      expect(ended[stream]).toContain(remedy)
    }
  })
  const daemon = yield* serveHere(home)
  const created = yield* daemon.create({ ...order, webhookUrl: inbox.url + path })
  return { chain, inbox, home, daemon, created, configure, command, isRefused, usdc: USDC.address, other: DAI.address }
})

/** What a payer who has scanned the code goes by. */
const asks = ({ decimals, paymentUri, tokenContract }: PaymentObject) => ({ decimals, paymentUri, tokenContract })

describe("the configuration changes", () => {
  liveTest("a token that a seen payment asks for cannot be dropped, and nothing is lost by trying", function* () {
    const { chain, command, configure, created, daemon, home, inbox, isRefused, usdc } = yield* shop
    yield* pay(chain, created)
    yield* chain.mine()
    yield* inbox.take(path, created, "payment.created", "payment.detecting")
    configure()
    // Beside the daemon too: before the operator restarts it.
    const beside = yield* command("config", "check", "--json")
    expect(beside.code).toBe(2)
    expect(JSON.parse(beside.stdout)).toMatchObject({ valid: false, problems: [{ at: section }] })
    yield* daemon.end("SIGTERM")
    yield* isRefused
    configure(usdc)
    expect(yield* command("config", "check")).toMatchObject({ code: 0 })
    const again = yield* serveHere(home, daemon.key)
    yield* chain.mine(confirmations)
    yield* inbox.take(path, created, "payment.confirmed")
    yield* again.end("SIGTERM")

    // Nothing is open any more. Late money is still seen, by the contract that the payment was created with.
    configure()
    yield* pay(chain, created)
    yield* chain.mine(confirmations + 1)
    const without = yield* serveHere(home, daemon.key)
    yield* without.hasRead(chain)
    expect(yield* without.payment(created)).toMatchObject({
      status: "confirmed",
      tokenContract: usdc,
      decimals: 6,
      exceptions: [{ kind: "overpaid", currency: "USDC", amount: order.amount }]
    })
    const refused = yield* without.call("POST", "/v1/payments", { ...order, merchantRef: "without" })
    expect(refused.status).toBe(400)
  })

  liveTest("another contract for a symbol does not affect open payments, and counts for new ones only", function* () {
    const { command, configure, created, daemon, home, isRefused, other, usdc } = yield* shop
    yield* daemon.end("SIGTERM")
    configure(other)
    yield* isRefused
    // The command that it names frees the configuration, once that is as it was.
    configure(usdc)
    const former = yield* serveHere(home, daemon.key)
    const abandoned = yield* command(
      ...["payments", "abandon", "--chain", "optimism", "--mode", "test", "--token", "USDC"]
    )
    expect(abandoned).toMatchObject({ code: 0, stdout: "1 open USDC payments on optimism.test have failed\n" })
    yield* former.end("SIGTERM")
    configure(other)
    const again = yield* serveHere(home, daemon.key)
    const { paymentUri: _, ...unchanged } = asks(created)
    expect(unchanged).toEqual({ tokenContract: usdc, decimals: 6 })
    expect(yield* again.payment(created)).toMatchObject({ ...unchanged, failureReason: "abandoned" })
    const later = yield* again.create(order)
    expect(later.tokenContract).toBe(other)
    expect(later.paymentUri).toContain(`ethereum:${other}@`)
  })
})
