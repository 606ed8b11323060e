import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import { type Address, encodeFunctionData } from "viem"
import { batcherAbi, batcherAddress } from "../../src/Sandbox/LocalChain.ts"
import { confirmations, localChain, makeHome, pay, rows, serveHere } from "../lib/daemon.ts"
import { startFaultProxy } from "../lib/faultProxy.ts"
import { makeInbox } from "../lib/inbox.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { tilld, tilldJson } from "../lib/tilld.ts"

const path = "/hook"
const network = ["--chain", "optimism", "--mode", "test"]
const usdc = { chain: "optimism", currency: "USDC", amount: "25000000" } as const

/** A shop on a chain behind a proxy. DAI is on the chain, and no one has configured it. */
const shop = Effect.gen(function* () {
  const chain = yield* localChain("optimism")
  const proxy = yield* startFaultProxy(chain.url)
  const inbox = yield* makeInbox()
  const { USDC } = chain.tokens
  const home = yield* makeHome({
    chains: new Map([["optimism", { ...chain, tokens: { ...(USDC && { USDC }) } }]]),
    rpcUrls: new Map([["optimism", [proxy.url]]]),
    caFile: inbox.caFile
  })
  const daemon = yield* serveHere(home)
  const create = () => daemon.create({ ...usdc, webhookUrl: inbox.url + path })
  const command = (...args: ReadonlyArray<string>) => tilld([...args, "--config", home.config])
  const json = <A>(...args: ReadonlyArray<string>) => tilldJson<A>([...args, "--config", home.config])
  return { chain, proxy, inbox, home, daemon, create, command, json }
})

interface Rescanned {
  readonly blocks: number
  readonly receipts: number
  readonly added: number
}

/** A payment whose transfer the daemon has missed, since its node withheld the logs; it is in block `number`. */
const missedPayment = Effect.gen(function* () {
  const world = yield* shop
  const { chain, create, daemon, proxy } = world
  const payment = yield* create()
  yield* chain.mine()
  yield* daemon.hasRead(chain)
  yield* proxy.set("emptyLogs")
  const hash = yield* pay(chain, payment)
  yield* chain.mine(2)
  const { number } = yield* chain.head
  yield* daemon.hasRead(chain)
  yield* proxy.set()
  expect((yield* daemon.payment(payment)).status).toBe("pending")
  return { ...world, payment, hash, number: number - 1 }
})

const ledger = (world: Pick<Effect.Effect.Success<typeof shop>, "home">) =>
  rows(world.home, "SELECT * FROM receipts ORDER BY block_number, address, position")

describe("rescan", () => {
  liveTest("finds missed transfers, and then nothing more", function* () {
    const world = yield* missedPayment
    const { chain, command, daemon, hash, inbox, json, number, payment } = world
    const first = yield* json<Rescanned>("rescan", ...network, "--from", "0")
    expect(first).toMatchObject({ from: 0, receipts: 1, added: 1 })
    yield* inbox.take(path, payment, "payment.created", "payment.detecting")
    const before = yield* ledger(world)
    const again = yield* json<Rescanned>("rescan", ...network, "--from", `${number}`, "--to", `${number}`)
    expect(again).toEqual({
      chain: "optimism",
      mode: "test",
      from: number,
      to: number,
      blocks: 1,
      receipts: 1,
      added: 0
    })
    expect(yield* ledger(world)).toEqual(before)
    const { code, stdout } = yield* command("rescan", ...network, "--from", `${number + 1}`)
    expect(code).toBe(0)
    expect(stdout).toContain("have been read again")
    expect(stdout).toContain("0 receipts found")

    yield* chain.mine(confirmations)
    const [confirmed] = yield* inbox.take(path, payment, "payment.confirmed")
    expect(confirmed?.event.data).toMatchObject({ txHash: hash, amountReceived: usdc.amount })
    expect((yield* daemon.payment(payment)).status).toBe("confirmed")
  })

  liveTest("says why it refuses", function* () {
    const { command } = yield* missedPayment
    for (const [code, reason, ...args] of [
      [1, "has not been read yet", ...network, "--from", "0", "--to", "1000000"],
      [1, "is above the last one", ...network, "--from", "1000000"],
      [1, "[chains.base.test] is not configured", "--chain", "base", "--mode", "test", "--from", "0"],
      [2, "must be the number of a block", ...network, "--from", "-1"]
    ] as const) {
      const ended = yield* command("rescan", ...args, "--json")
      expect(ended, reason).toMatchObject({ code, stdout: "", stderr: expect.stringContaining(reason) })
    }
  })
})

describe("claim", () => {
  liveTest("counts a missed transaction once", function* () {
    const world = yield* missedPayment
    const { chain, hash, inbox, json, number, payment } = world
    const credit = { address: payment.address, currency: "USDC", amount: usdc.amount, payment: payment.id }
    const claimed = yield* json("claim", ...network, hash)
    expect(claimed).toMatchObject({ txHash: hash, blockNumber: number, credits: [credit], added: 1 })
    yield* inbox.take(path, payment, "payment.created", "payment.detecting")
    const before = yield* ledger(world)
    expect(yield* json("claim", ...network, hash.toUpperCase().replace("0X", "0x"))).toMatchObject({ added: 0 })
    expect(yield* json<Rescanned>("rescan", ...network, "--from", "0")).toMatchObject({ receipts: 1, added: 0 })
    expect(yield* ledger(world)).toEqual(before)
    yield* chain.mine(confirmations)
    yield* inbox.take(path, payment, "payment.confirmed")
  })

  liveTest("counts coins that a contract sent, to several payments, where a provider traces", function* () {
    const { chain, command, create, daemon, home, json } = yield* shop
    const payments = [yield* create(), yield* create()]
    const to = payments.map(({ address }) => address as Address)
    const data = encodeFunctionData({ abi: batcherAbi, functionName: "sendEther", args: [to, [3n, 4n]] })
    const hash = yield* chain.send({ to: batcherAddress, data, value: 7n })
    yield* chain.mine()
    yield* daemon.hasRead(chain)
    const credits = [3, 4].map((amount, i) => ({
      address: to[i],
      currency: "ETH",
      amount: `${amount}`,
      payment: payments[i]?.id
    }))
    expect(yield* json("claim", ...network, hash)).toMatchObject({ credits: expect.arrayContaining(credits) })
    const stored = "SELECT amount, position FROM receipts ORDER BY amount"
    const position = `call:${hash}`
    expect(yield* rows(home, stored)).toEqual([
      { amount: "3", position },
      { amount: "4", position }
    ])
    const { stdout } = yield* command("claim", ...network, hash)
    expect(stdout).toContain("the ledger had all of it already")
    expect(stdout).toContain(`3 ETH to ${to[0]}: ${payments[0]?.id}`)
    expect(yield* rows(home, stored)).toHaveLength(2)
  })

  liveTest("says why a transaction credits nothing", function* () {
    const { chain, command, create, daemon, home } = yield* shop
    const { address } = yield* create()
    const to = address as Address
    const stranger = yield* chain.payNative({ to: `0x${"5".repeat(40)}`, amount: 1n })
    const dai = yield* chain.payToken({ symbol: "DAI", to, amount: 1n })
    const zero = yield* chain.payToken({ symbol: "USDC", to, amount: 0n })
    // A token contract takes no coins.
    const failed = yield* chain.send({ to: chain.tokens.USDC?.address ?? to, value: 1n })
    yield* chain.mine()
    yield* daemon.hasRead(chain)
    const pending = yield* chain.payToken({ symbol: "USDC", to, amount: 1n })
    const refusals: ReadonlyArray<readonly [number, string, string]> = [
      [1, `0x${"1".repeat(64)}`, "No provider of chains.optimism.test knows"],
      [1, pending, "in no block yet"],
      [1, failed, "it failed"],
      [1, stranger, "pays no address that was handed out here"],
      [1, dai, `contract ${chain.tokens.DAI?.address.toLowerCase()}, which is none of chains.optimism.test`],
      [1, zero, "the amount is 0"],
      [2, "0x1234", "64 hexadecimal digits"]
    ]
    for (const [code, hash, reason] of refusals) {
      const ended = yield* command("claim", ...network, hash, "--json")
      expect(ended, reason).toMatchObject({ code, stdout: "" })
      expect(ended.stderr).toContain(reason)
    }
    expect(yield* rows(home, "SELECT * FROM receipts")).toEqual([])
  })
})
