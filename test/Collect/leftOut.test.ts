/** What a plan leaves alone, or asks about, while the rest is moved. */
import { existsSync } from "node:fs"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import type { Address } from "viem"
import { pay, rows } from "../lib/daemon.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { tilld, tilldJson } from "../lib/tilld.ts"
import { tilldAtTerminal } from "./atTerminal.ts"
import { someone, usd } from "./collecting.ts"
import { inFrontOf } from "./inFront.ts"
import { eventually, onceDeep, openShop } from "./shop.ts"

liveTest("asks before it plans a refund whose gas costs more than it pays", function* () {
  const { chain, exceptions, file, home, paid, planning } = yield* openShop()
  const { address } = yield* paid("USDT", 25n * usd)
  // Of another token: of its own, so little is no exception.
  yield* chain.payToken({ symbol: "USDC", to: address as Address, amount: 10_000n })
  const [open] = yield* eventually(exceptions, (all) => all.length > 0)
  const command = (name: string) => planning(name, "--refund", open?.id ?? "", "--to", someone())
  const said = new RegExp(`${open?.id}: it is worth 0.01 USD, and its gas costs \\d+\\.\\d\\d`)
  const refused = yield* onceDeep([...command("json"), "--json"])
  expect([refused.code, existsSync(file("json"))]).toEqual([2, false])
  expect(refused.stderr).toMatch(said)
  expect(refused.stderr).toContain("--below-gas plans it all the same")
  const no = yield* tilldAtTerminal(home.folder, command("no"), [["(yes/no)? ", "no"]])
  expect([no.code, existsSync(file("no"))]).toEqual([2, false])
  const yes = yield* tilldAtTerminal(home.folder, command("yes"), [["(yes/no)? ", "yes"]])
  const flag = yield* tilld([...command("flag"), "--below-gas"])
  for (const { code, stderr } of [yes, flag]) expect([code, stderr]).toEqual([0, expect.stringMatching(said)])
})

liveTest("plans no refund of what one of two providers alone has, unless a flag says so", function* () {
  const hidden = new Map<string, unknown>([
    ["eth_getTransactionReceipt", null],
    ["eth_getLogs", []]
  ])
  const second = (url: string) =>
    inFrontOf(url, ({ method }, result) => (hidden.has(method) ? hidden.get(method) : result))
  const { chain, daemon, exceptions, file, home, planning } = yield* openShop({ second, other: "base" })
  const payment = yield* daemon.create({ chain: "base", currency: "USDC", amount: "1000" })
  yield* chain.payToken({ symbol: "USDC", to: payment.address as Address, amount: 20n * usd })
  yield* eventually(rows(home, "SELECT 1 FROM receipts"), ({ length }) => length > 0)
  yield* daemon.call("POST", `/v1/payments/${payment.id}/cancel`, {})
  const [open] = yield* eventually(exceptions, ({ length }) => length > 0)
  const command = planning("plan", "--refund", open?.id ?? "", "--to", someone())
  const refused = yield* eventually(tilld(command), ({ stderr }) => !stderr.includes("confirmations"))
  expect([refused.code, existsSync(file("plan"))]).toEqual([1, false])
  expect(refused.stderr).toContain(`No second provider of ethereum.test has the money of ${open?.id}`)
  expect(yield* tilldJson([...command, "--uncorroborated"])).toMatchObject({ moves: 1 })
})

liveTest("takes what waits at an address that is named, and leaves what waits at another", function* () {
  const { chain, daemon, plan, planIn, planning, until } = yield* openShop()
  const order = { chain: "ethereum", currency: "USDC", amount: `${50n * usd}` } as const
  const begun = Effect.gen(function* () {
    const payment = yield* daemon.create(order)
    yield* pay(chain, { ...payment, amount: `${25n * usd}` })
    yield* until(payment, "detecting")
    return payment.address
  })
  const [named, also, alone] = [yield* begun, yield* begun, yield* begun]
  const to = ["--to", someone()]
  yield* plan("plan", ...to, "--include-open", `${named},${also.toLowerCase()}`)
  const { leftOut, moves } = planIn("plan")
  expect(moves.map(({ address, amount }) => [address, amount])).toEqual(
    [named, also].map((address) => [address, `${25n * usd}`])
  )
  expect(leftOut.map(({ address }) => address)).toEqual([alone])
  expect(yield* plan("all", ...to, "--include-open", "all")).toMatchObject({ moves: 3 })
  for (const [more, why] of [
    [["--include-open", `all,${someone()}`], "no money came to such an address"],
    [["--include-open", named, "--refund", "exc_1"], "leave it out beside --refund"],
    [["--refund", "all,exc_1"], "name others in a plan of their own"]
  ] as const) {
    const { code, stderr } = yield* tilld(planning("none", ...to, ...more))
    expect([code, stderr]).toEqual([2, expect.stringContaining(why)])
  }
})
