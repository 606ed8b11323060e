import { expect, it } from "vitest"
import { hdWallet } from "../../../src/Settings/hdWallet.ts"
import { testXpub } from "../../lib/settings.ts"
import { epoch } from "../../sim/Place.ts"
import { paymaster } from "../../sim/transactions.ts"
import { ask, confirm, exceptions, logs, minute, onStage, payments, placeOf, second, send } from "../reportScene.ts"

// Ways in which public gateways and indexers have lost, invented or doubled money, each with the issue of its users.
// In every test the simulation's ledger compares the database with the chain after each commit.

const scene = onStage()

// https://github.com/btcpayserver-tether/BTCPayServer.Plugins.USDt/pull/63
it(
  "several transfers in one transaction are each counted: they are identified by log, not by transaction",
  scene(["polygon"], async (world) => {
    const one = await ask(world, "polygon", "USDC")
    const other = await ask(world, "polygon", "USDC")
    send(world, "polygon", logs("polygon", [one, 400n], [other, 1_000n], [one, 600n]))
    await confirm(world)
    expect(payments(world)).toEqual(["confirmed 1000", "confirmed 1000"])
  })
)

// https://github.com/btcpayserver/btcpayserver/issues/5286
it(
  "a payment that was paid on time does not expire while no node answers",
  scene(["base"], async (world) => {
    const address = await ask(world, "base", "USDC")
    await world.pass(5 * second)
    for (const provider of [0, 1]) placeOf(world, "base").breaks(provider, "down", 0, world.now, world.now + 5 * minute)
    send(world, "base", logs("base", [address, 1_000n]))
    await world.pass(4 * minute)
    expect(payments(world)).toEqual(["pending"])
    await world.pass(2 * minute)
    expect(payments(world)).toEqual(["confirmed 1000"])
  })
)

// https://github.com/ethereum/mist/issues/3387 and https://github.com/ethereum/meteor-dapp-wallet/issues/442
it.each(["ethereum", "base"] as const)(
  "an exchange's withdrawal through a contract is credited on %s, whether its calldata names the address or not",
  async (chain) =>
    scene([chain], async (world) => {
      for (const input of ["named", "hidden"]) {
        const address = await ask(world, chain, "ETH")
        send(world, chain, {
          to: paymaster,
          value: 1_000n,
          input: input === "named" ? `0x12345678${address.slice(2).padStart(64, "0")}` : "0x12345678",
          inner: [{ type: "CALL", from: paymaster, to: address, value: 1_000n }],
          gasUsed: 90_000n
        })
        await world.pass(30 * second)
      }
      await confirm(world)
      expect(payments(world)).toEqual(["confirmed 1000", "confirmed 1000"])
    })()
)

// https://github.com/BoltzExchange/boltz-backend/issues/191
it(
  "a restart continues at the checkpoint, however many blocks ago that is",
  scene(["arbitrum"], async (world) => {
    const address = await ask(world, "arbitrum", "USDC")
    await world.pass(8 * second)
    send(world, "arbitrum", logs("arbitrum", [address, 1_000n]))
    const before = placeOf(world, "arbitrum").chain.head.number
    await world.restart(120 * minute)
    expect(placeOf(world, "arbitrum").chain.head.number - before).toBeGreaterThan(4_000)
    await confirm(world)
    expect(payments(world)).toEqual(["confirmed 1000"])
  })
)

// https://github.com/ethereum/go-ethereum/issues/24078
it.each(["ethereum", "base"] as const)("empty logs from a lagging node of %s are corrected later", async (chain) =>
  scene([chain], async (world) => {
    const address = await ask(world, chain, "USDC")
    const place = placeOf(world, chain)
    place.breaks(0, "emptyLogs", 0, world.now, world.now + 10 * second)
    const { hash } = send(world, chain, logs(chain, [address, 1_000n]))
    await world.pass(10 * second)
    expect(place.providers[0]?.withheld).toContain(hash)
    await confirm(world)
    expect(payments(world)).toEqual(["confirmed 1000"])
  })()
)

// https://github.com/graphprotocol/graph-node/issues/3891
it(
  "logs that a node left out under the right hash are found by the verification pass",
  scene(["optimism"], async (world) => {
    const address = await ask(world, "optimism", "USDC")
    const place = placeOf(world, "optimism")
    place.breaks(0, "partialLogs", 0, world.now, world.now + 10 * second)
    for (let i = 0; i < 10; i++) send(world, "optimism", logs("optimism", [address, 100n]))
    await world.pass(10 * second)
    expect(payments(world)).not.toEqual(["detecting 1000"])
    expect(place.providers[0]?.withheld.size).toBeGreaterThan(0)
    await confirm(world)
    expect(payments(world)).toEqual(["confirmed 1000"])
  })
)

// https://github.com/LFDT-web3j/web3j/issues/703 and https://github.com/autonomoussoftware/metronome-wallet-desktop/issues/397
it(
  "blocks mined while the connection was lost are read once it is back",
  scene(["polygon"], async (world) => {
    const address = await ask(world, "polygon", "USDC")
    await world.pass(5 * second)
    for (const provider of [0, 1])
      placeOf(world, "polygon").breaks(provider, "hang", 0, world.now, world.now + 40 * second)
    send(world, "polygon", logs("polygon", [address, 1_000n]))
    await world.pass(35 * second)
    expect(payments(world)).toEqual(["pending"])
    await confirm(world)
    expect(payments(world)).toEqual(["confirmed 1000"])
  })
)

// https://github.com/entrius/allways/issues/175
it.each(["before", "after"] as const)(
  "the checkpoint and the receipts are stored together: a crash right %s the commit loses nothing",
  async (when) =>
    scene(["base"], async (world) => {
      const address = await ask(world, "base", "USDC")
      await world.pass(5 * second)
      send(world, "base", logs("base", [address, 1_000n]))
      // Any of these commits may store the receipt: the ledger looks at each.
      for (let crash = 0; crash < 6; crash++) {
        world.crashAt(when, 1, second)
        await world.pass(5 * second)
      }
      await confirm(world)
      expect(payments(world)).toEqual(["confirmed 1000"])
    })()
)

// https://github.com/btcpayserver/btcpayserver/issues/4146
it(
  "money that is too much, too little or too late is flagged: overpaid, underpaid, late",
  scene(["base"], async (world) => {
    const short = await ask(world, "base", "USDC")
    const paid = await ask(world, "base", "USDC")
    send(world, "base", logs("base", [short, 300n], [paid, 1_070n]))
    await world.pass(40 * second)
    expect(payments(world)).toEqual(["detecting 300", "confirmed 1070"])
    send(world, "base", logs("base", [paid, 50n]))
    await world.pass(minute)
    expect(payments(world)).toEqual(["failed insufficient_amount 300", "confirmed 1070"])
    send(world, "base", logs("base", [short, 900n]))
    send(world, "base", logs("base", [paid, 8n]))
    await world.pass(5 * minute)
    expect(payments(world)).toEqual(["failed insufficient_amount 300", "confirmed 1070"])
    expect(exceptions(world)).toEqual([
      "overpaid 70 USDC",
      "overpaid 50 USDC",
      "underpaid 300 USDC",
      "late 900 USDC",
      "late 8 USDC"
    ])
  })
)

// https://github.com/ponder-sh/ponder/issues/1657
it(
  "a reorg below the final block does not stop the watcher: reading goes on, and an undone payment is reported",
  scene(["base"], async (world) => {
    await world.pass(minute)
    const kept = await ask(world, "base", "USDC")
    const undone = await ask(world, "base", "USDC")
    // Another payment is still open: without one, finality is polled less often.
    await ask(world, "base", "USDC", { expiresIn: 600 })
    send(world, "base", logs("base", [kept, 1_000n]))
    const gone = send(world, "base", logs("base", [undone, 1_000n]))
    const { chain } = placeOf(world, "base")
    const before = chain.head.number
    await world.pass(40 * second)
    expect(payments(world)).toEqual(["confirmed 1000", "confirmed 1000", "pending"])
    expect(chain.finalized).toBeGreaterThan(before + 2)
    chain.reorg(chain.head.number - before, 1, world.now, ({ hash }) => (hash === gone.hash ? "never" : "again"))
    await world.pass(2 * minute)
    expect(payments(world)).toEqual(["confirmed 1000", "failed reorged", "pending"])
  })
)

// https://github.com/web3/web3.js/issues/871 and https://github.com/ethereum/go-ethereum/issues/23845
it(
  "no filter or subscription is used that a node could forget",
  scene(["ethereum", "base"], async (world) => {
    await ask(world, "base", "USDC")
    await ask(world, "ethereum", "ETH")
    await world.pass(2 * minute)
    const methods = world.places.flatMap(({ providers }) => providers.flatMap(({ calls }) => [...calls.keys()]))
    expect(methods).toContain("eth_getLogs")
    expect(methods.filter((method) => /filter|subscri/i.test(method))).toEqual([])
  })
)

// https://github.com/ethereum/go-ethereum/issues/24078: also, a transaction that a block lists may have failed.
it.each(["ethereum", "base"] as const)("the value of a failed transaction on %s is not counted", async (chain) =>
  scene([chain], async (world) => {
    const coin = await ask(world, chain, "ETH")
    const token = await ask(world, chain, "USDC")
    send(world, chain, { to: coin, value: 1_000n, fails: true })
    send(world, chain, { ...logs(chain, [token, 1_000n]), fails: true })
    await confirm(world)
    expect(payments(world)).toEqual(["pending", "pending"])
  })()
)

// https://github.com/graphprotocol/graph-node/issues/5661
it.each(["ethereum", "polygon"] as const)(
  "logs of an orphaned block that a node still returns as removed do not count on %s, and stop nothing",
  async (chain) =>
    scene([chain], async (world) => {
      const address = await ask(world, chain, "USDC")
      const place = placeOf(world, chain)
      await world.pass(2 * second)
      send(world, chain, logs(chain, [address, 1_000n]))
      await world.pass(place.plan.interval)
      place.chain.reorg(1, 1, world.now, () => "never")
      place.breaks(0, "removedLogs", 0, world.now, world.now + 10 * minute)
      send(world, chain, logs(chain, [address, 700n]))
      await confirm(world)
      expect(payments(world)).toEqual(["detecting 700"])
    })()
)

// https://github.com/btcpayserver/btcpayserver/issues/3817
it.each([
  ["ethereum", "ETH"],
  ["base", "ETH"],
  ["base", "USDC"]
] as const)("two payments in one block of %s to one address are both counted in %s", async (chain, currency) =>
  scene([chain], async (world) => {
    const address = await ask(world, chain, currency)
    for (const value of [250n, 750n]) {
      send(world, chain, currency === "ETH" ? { to: address, value } : logs(chain, [address, value]))
    }
    await confirm(world)
    expect(payments(world)).toEqual(["confirmed 1000"])
  })()
)

// https://github.com/btcpayserver/btcpayserver-doc/issues/960
it(
  "two accounts on one extended public key never get the same address, across restarts too",
  scene(["base"], async (world) => {
    const addresses = []
    for (let i = 0; i < 4; i++) {
      addresses.push(await ask(world, "base", "USDC"), await ask(world, "base", "USDC", { account: "other" }))
      await world.restart(second)
    }
    expect(new Set(addresses).size).toBe(8)
    const [first = ""] = addresses
    send(world, "base", logs("base", [first, 1_000n]))
    await confirm(world)
    expect(payments(world)).toEqual(["confirmed 1000", ...Array(7).fill("pending")])
  })
)

// https://github.com/spesmilo/electrum/issues/6609
it.each([
  ["ethereum", "ETH"],
  ["base", "ETH"],
  ["base", "USDC"]
] as const)("what an address had on %s before it was handed out pays for nothing in %s", async (chain, currency) =>
  scene([chain], async (world) => {
    const next = hdWallet(testXpub).address(0).toLowerCase()
    const pay = (value: bigint) =>
      send(world, chain, currency === "ETH" ? { to: next, value } : logs(chain, [next, value]))
    await world.passTo(epoch + 10 * second)
    pay(5_000n)
    await world.pass(70 * second)
    expect(await ask(world, chain, currency)).toBe(next)
    await world.pass(20 * second)
    expect(payments(world)).toEqual(["pending"])
    pay(1_000n)
    await confirm(world)
    expect(payments(world)).toEqual(["confirmed 1000"])
  })()
)
