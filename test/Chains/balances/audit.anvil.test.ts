import { describe, expect, it } from "@effect/vitest"
import { Effect, Either, Redacted, TestClock } from "effect"
import { type Address, encodeFunctionData, getAddress, type Hex, parseAbi, toHex } from "viem"
import * as Audit from "../../../src/Chains/balances/AuditRepo.ts"
import * as Ledger from "../../../src/Chains/ledger/LedgerRepo.ts"
import { multicall3Address } from "../../../src/Chains/rpc/contractViews.ts"
import { Rpc, type RpcClient } from "../../../src/Chains/rpc/Rpc.ts"
import { RpcError } from "../../../src/Chains/rpc/RpcError.ts"
import { contractsOf } from "../../../src/Chains/scan/transfers.ts"
import { makeMaintenance } from "../../../src/Chains/watcher/maintenance.ts"
import { localTokens, startLocalChain } from "../../../src/Sandbox/LocalChain.ts"
import { Reader } from "../../../src/Sql.ts"
import { change, rows, write } from "../../lib/rows.ts"
import { soleProvider, someProviders } from "../../lib/soleProvider.ts"
import { nodeClient } from "../../sim/nodeClient.ts"
import { word } from "../../sim/transactions.ts"
import { settings } from "../world.ts"
import { alice, base, inStore, network, owe, scanTo, watchOf } from "./reconcileWorld.ts"

const usdc = localTokens.USDC.address
const payee = getAddress(alice as Hex)
/** Long ago: no sweep looks at its address any more. */
const ended = { endedAt: 1 }
const coin = 10n ** 16n

/** A provider that shows 1,000 of the token at each address. */
const lying = (client: RpcClient) =>
  nodeClient("liar", (calls) =>
    Effect.map(client.sendEach(calls), (replies) =>
      replies.map((reply, i) => {
        const [to] = calls.flatMap(({ method, params: [call] }, n) =>
          n === i && method === "eth_call" ? [(call as { readonly to: string }).to] : []
        )
        if (to === usdc.toLowerCase()) return Either.right(word(1_000n))
        return to === multicall3Address
          ? Either.left(new RpcError({ host: "liar", method: "eth_call", reason: "refused", detail: "no" }))
          : reply
      })
    )
  )

/**
 * A local chain that is read from a block on, and what the audit tells of it. `step`: some blocks and the shortest pause later,
 * when the chain has been read to its head.
 */
const auditing = Effect.fnUntraced(function* (others: (client: RpcClient) => ReadonlyArray<RpcClient> = () => []) {
  const chain = yield* startLocalChain({ chain: "base", chainId: 31_337, tokens: ["USDC"] })
  const client = (yield* Rpc).client(Redacted.make(chain.url))
  const { decimals } = localTokens.USDC
  const withUsdc = { ...base, tokens: [{ symbol: "USDC" as const, address: usdc.toLowerCase(), decimals }] }
  const rest = others(client)
  const { provider, providers } = rest.length === 0 ? soleProvider(client) : someProviders(client, ...rest)
  const around = { ...(yield* watchOf(providers)), chain: withUsdc, contracts: contractsOf(withUsdc, []) }
  around.watched.add(alice)
  const maintenance = makeMaintenance(around, settings([withUsdc]).payments)
  const head = Effect.map(chain.head, ({ hash, number, timestamp }) => ({ hash, number, time: timestamp }))
  const read = Effect.zipRight(
    chain.mine(13),
    Effect.tap(head, (at) => scanTo(at))
  )
  yield* scanTo(yield* head)
  yield* maintenance.run(provider, yield* read, false)
  const step = Effect.gen(function* () {
    const at = yield* read
    yield* TestClock.adjust("1 hour")
    yield* maintenance.run(provider, at, false)
  })
  const told = Effect.map(Effect.flatMap(Reader, Audit.told), (all) =>
    all.map(({ address, amount, currency }) => [address, currency, amount])
  )
  /** Sent in a block that is skipped: neither the scan nor the verification pass reads it. */
  const send = (amount: bigint) =>
    chain
      .payToken({ symbol: "USDC", to: payee, amount })
      .pipe(Effect.zipRight(read), Effect.zipRight(change("UPDATE scans SET verified_number = head_number")))
  /** A receipt of it, as the scan stores one. */
  const noted = (amount: bigint) =>
    Effect.flatMap(head, ({ hash, number, time }) =>
      write(
        Ledger.keepReceipts(
          network,
          [
            {
              ...{ blockHash: hash, blockNumber: number, blockTime: time, txHash: hash, position: `log:${number}` },
              ...{ address: alice, contract: usdc.toLowerCase(), currency: "USDC", amount }
            }
          ],
          true
        )
      )
    )
  return { chain, head, noted, send, step, told }
})

describe("the audit of balances, against a real node", () => {
  it.scoped("tells of a transfer whose row was lost, and no more once it is there", () =>
    Effect.gen(function* () {
      const { noted, send, step, told } = yield* auditing()
      yield* owe(alice, { currency: "USDC", chain: "base" })
      yield* send(100n)
      yield* noted(100n)
      yield* step
      yield* step
      expect(yield* told).toEqual([])
      yield* change("DELETE FROM receipts")
      yield* step
      // It may be under way: the verification pass has not been there.
      expect(yield* told).toEqual([])
      yield* step
      yield* step
      expect(yield* told).toEqual([[payee, "USDC", 100n]])
      yield* noted(100n)
      yield* step
      expect(yield* told).toEqual([])
    }).pipe(Effect.provide(Rpc.layer), inStore)
  )

  it.scoped("tells of money that came while its blocks were skipped, to an address that is watched no more", () =>
    Effect.gen(function* () {
      const { send, step, told } = yield* auditing()
      yield* owe(alice, { currency: "USDC", chain: "base", ...ended })
      yield* send(100n)
      for (let i = 0; i < 3; i++) yield* step
      expect(yield* told).toEqual([[payee, "USDC", 100n]])
    }).pipe(Effect.provide(Rpc.layer), inStore)
  )

  it.scoped("does not tell of what was swept, and does of what has come since", () =>
    Effect.gen(function* () {
      const { chain, head, noted, send, step, told } = yield* auditing()
      yield* owe(alice, { currency: "USDC", chain: "base", ...ended })
      yield* send(100n)
      yield* noted(100n)
      const abi = parseAbi(["function transfer(address to, uint256 amount)"])
      const data = encodeFunctionData({ abi, functionName: "transfer", args: [getAddress(usdc), 100n] })
      yield* chain.rpc("anvil_impersonateAccount", [payee])
      yield* chain.rpc("anvil_setBalance", [payee, toHex(coin)])
      yield* chain.rpc("eth_sendTransaction", [{ from: payee as Address, to: usdc, data }])
      yield* chain.mine()
      yield* chain.rpc("anvil_setBalance", [payee, "0x0"])
      yield* change(
        `INSERT INTO collected (chain, mode, tx_hash, place, address, receiver, currency, amount, block_time, noted_at)
         VALUES ('base', 'test', '0x1', 0, ?, '0x2', 'USDC', '100', ?, 1)`,
        payee,
        (yield* head).time
      )
      for (let i = 0; i < 3; i++) yield* step
      expect(yield* rows("SELECT * FROM unaccounted")).toEqual([])
      yield* send(40n)
      for (let i = 0; i < 3; i++) yield* step
      expect(yield* told).toEqual([[payee, "USDC", 40n]])
    }).pipe(Effect.provide(Rpc.layer), inStore)
  )

  it.scoped("finds the chain's coin that no sweep looks for, and tells of coin whose row was lost", () =>
    Effect.gen(function* () {
      const { chain, step, told } = yield* auditing()
      yield* owe(alice, { currency: "ETH", chain: "base", ...ended })
      yield* chain.payNative({ to: payee, amount: coin })
      yield* step
      // Money is not missed that only had to be looked for.
      expect(yield* rows("SELECT amount FROM receipts")).toEqual([{ amount: `${coin}` }])
      expect(yield* rows("SELECT * FROM unaccounted")).toEqual([])
      yield* change("DELETE FROM receipts")
      for (let i = 0; i < 3; i++) yield* step
      expect(yield* told).toEqual([[payee, "ETH", coin]])
    }).pipe(Effect.provide(Rpc.layer), inStore)
  )

  it.scoped("does not believe one of two providers", () =>
    Effect.gen(function* () {
      const { send, step, told } = yield* auditing((client) => [lying(client)])
      yield* owe(alice, { currency: "USDC", chain: "base", ...ended })
      // Each day another one is read first.
      for (let i = 0; i < 3; i++) {
        yield* TestClock.adjust("1 day")
        yield* step
        yield* step
        expect(yield* rows("SELECT * FROM unaccounted")).toEqual([])
      }
      yield* send(300n)
      for (let i = 0; i < 3; i++) yield* step
      expect(yield* told).toEqual([[payee, "USDC", 300n]])
    }).pipe(Effect.provide(Rpc.layer), inStore)
  )
})
