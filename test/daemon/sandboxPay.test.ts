import { describe, expect } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import { startLocalChain } from "../../src/Sandbox/LocalChain.ts"
import { makeHome, serveHere } from "../lib/daemon.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { tilld, tilldJson } from "../lib/tilld.ts"

interface Seen extends PaymentObject {
  readonly exceptions?: ReadonlyArray<{ readonly kind: string; readonly currency: string; readonly txHash?: string }>
}

/**
 * A sandbox as far as the command knows one: chains that mine by themselves, and a daemon that watches them. Its key is one
 * of another account than the default one.
 */
const sandbox = Effect.gen(function* () {
  const base = yield* startLocalChain({ chain: "base", chainId: 31_341, tokens: ["USDC"], blockTime: 1 })
  const polygon = yield* startLocalChain({ chain: "polygon", chainId: 31_342, tokens: ["USDC", "DAI"], blockTime: 1 })
  const home = yield* makeHome({
    chains: new Map([
      ["base", base],
      ["polygon", polygon]
    ])
  })
  const config = ["--config", home.config]
  const json = <A>(...args: ReadonlyArray<string>) => tilldJson<A>([...args, ...config])
  const first = yield* serveHere(home)
  const { id } = yield* json<{ id: string }>("accounts", "create", "--name", "Other", "--shared-wallet")
  const { key } = yield* json<{ key: string }>("keys", "create", "--mode", "test", "--name", "other", "--account", id)
  yield* first.end("SIGTERM")
  const daemon = yield* serveHere(home, key)
  const pay = (...args: ReadonlyArray<string>) => tilld(["sandbox", "pay", ...args, ...config])
  const sent = (...args: ReadonlyArray<string>) =>
    json<{ txHash: string; amount: string; expected: string }>("sandbox", "pay", ...args)
  const until = (payment: PaymentObject, fits: (seen: Seen) => boolean) =>
    daemon.payment(payment).pipe(
      Effect.map((seen): Seen => seen),
      Effect.filterOrFail(fits),
      Effect.retry(Schedule.spaced("100 millis"))
    )
  return { daemon, pay, sent, until }
})

const order = { chain: "polygon", currency: "USDC", amount: "25000001" } as const

describe("tilld sandbox pay", () => {
  liveTest("pays half, the rest and too much, and what it says comes of it", function* () {
    const { daemon, pay, sent, until } = yield* sandbox
    const payment = yield* daemon.create(order)
    const half = yield* pay(payment.id, "--part", "half")
    expect(half).toMatchObject({ code: 0, stderr: "" })
    expect(half.stdout).toMatch(
      new RegExp(
        `^Sent 12\\.500000 USDC on polygon to ${payment.address}, in 0x[0-9a-f]{64}\n` +
          "To expect: payment.detecting. 12.500001 USDC are still missing: .* insufficient_amount\\.\n$"
      )
    )
    yield* until(payment, ({ amountReceived }) => amountReceived === "12500000")
    const rest = yield* sent(payment.id)
    expect(rest).toEqual({
      payment: payment.id,
      chain: "polygon",
      currency: "USDC",
      amount: "12500001",
      to: payment.address,
      txHash: expect.stringMatching(/^0x[0-9a-f]{64}$/),
      expected: "payment.confirmed after 3 blocks"
    })
    const confirmed = yield* until(payment, ({ status }) => status === "confirmed")
    expect(confirmed).toMatchObject({ txHash: rest.txHash })

    const other = yield* daemon.create(order)
    const more = yield* sent(other.id, "--part", "more")
    expect(more.expected).toContain("an exception overpaid of 2.500000 USDC")
    const { exceptions } = yield* until(other, (seen) => seen.exceptions !== undefined)
    expect(exceptions).toMatchObject([{ kind: "overpaid", amount: "2500000", txHash: more.txHash }])
  })

  liveTest("pays with another token and on another chain, and says what is wrong where it cannot pay", function* () {
    const { daemon, pay, sent, until } = yield* sandbox
    const payment = yield* daemon.create(order)
    // Otherwise its chain would be read every two minutes.
    yield* daemon.create({ ...order, chain: "base" })
    const dai = yield* sent(payment.id, "--token", "DAI")
    expect(dai).toMatchObject({ amount: "25000001000000000000", expected: expect.stringContaining("wrong_token") })
    const coin = yield* sent(payment.id, "--token", "MATIC", "--part", "half")
    expect(coin).toMatchObject({ amount: "12500000000000000000", expected: expect.stringContaining("found when") })
    const elsewhere = yield* sent(payment.id, "--chain", "base")
    const { exceptions = [] } = yield* until(payment, (seen) => seen.exceptions?.length === 2)
    expect(exceptions.map(({ currency, kind, txHash }) => `${kind} ${currency} ${txHash}`).toSorted()).toEqual([
      `wrong_chain USDC ${elsewhere.txHash}`,
      `wrong_token DAI ${dai.txHash}`
    ])

    const wrong: ReadonlyArray<readonly [args: ReadonlyArray<string>, code: number, said: string]> = [
      [[`pay_${"x".repeat(22)}`], 1, `There is no payment pay_${"x".repeat(22)}`],
      [[], 2, "ID"],
      [[payment.id, "--token", "DAI", "--chain", "base"], 2, "base has no DAI here; it has ETH, USDC"],
      [[payment.id, "--token", "EUR"], 2, "MATIC"],
      [[payment.id, "--chain", "arbitrum"], 2, "has no local chain arbitrum in test mode"],
      [[payment.id, "--chain", "solana"], 2, "polygon"],
      [[payment.id, "--part", "all"], 2, "half"]
    ]
    for (const [args, code, said] of wrong) {
      expect(yield* pay(...args), args.join(" ")).toMatchObject({
        code,
        stdout: "",
        stderr: expect.stringContaining(said)
      })
    }
    yield* daemon.end("SIGTERM")
    const over = yield* pay(payment.id)
    expect(over).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(/No sandbox runs.*npm run sandbox/)
    })
  })
})
