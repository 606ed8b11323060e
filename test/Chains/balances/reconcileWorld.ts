import { Effect, Layer } from "effect"
import { getAddress, type Hex } from "viem"
import * as Balances from "../../../src/Chains/balances/BalancesRepo.ts"
import { type CheckedBalances, commitBalances } from "../../../src/Chains/balances/commitBalances.ts"
import type { BalanceQuery } from "../../../src/Chains/balances/discrepancy.ts"
import { type ReconcileDeps, reconcileBalances } from "../../../src/Chains/balances/reconcile.ts"
import { Troubles } from "../../../src/Chains/evidence/Troubles.ts"
import { AddressSet } from "../../../src/Chains/ledger/AddressSet.ts"
import * as Ledger from "../../../src/Chains/ledger/LedgerRepo.ts"
import type { Settlement } from "../../../src/Chains/ledger/SettlementTag.ts"
import { HeadClock } from "../../../src/Chains/providers/HeadClock.ts"
import { Heads } from "../../../src/Chains/providers/Heads.ts"
import type { Providers } from "../../../src/Chains/providers/Providers.ts"
import type { RpcClient } from "../../../src/Chains/rpc/Rpc.ts"
import type { RpcReason } from "../../../src/Chains/rpc/RpcError.ts"
import type { WatchContext } from "../../../src/Chains/scan/WatchContext.ts"
import type { ChainName, Network } from "../../../src/Domain/Chain.ts"
import type { PaymentCurrency } from "../../../src/Domain/Currency.ts"
import type { BlockRef } from "../../../src/Domain/Receipt.ts"
import type { ChainSettings } from "../../../src/Settings.ts"
import { Reader, Tx, Writer } from "../../../src/Sql.ts"
import { tempStore } from "../../lib/store.ts"
import { errorOf } from "../providing.ts"
import { distorted } from "../twisted.ts"
import { chainSettings, insertPayment } from "../world.ts"
import { BalanceModel } from "./BalanceModel.ts"

/** Not ethereum, where full blocks show what is sent to an address directly. */
export const base = chainSettings({ chain: "base", mode: "test" })
export const network: Network = { chain: "base", mode: "test" }

export const alice = `0x${"a1".repeat(20)}`
export const bob = `0x${"b2".repeat(20)}`

export const inStore = <A, E, R>(test: Effect.Effect<A, E, R>) => Effect.provide(test, Layer.fresh(tempStore))

/** A settlement that only records which payments were passed to it. */
export const noting = () => {
  const touched: Array<Ledger.Touched> = []
  const settlement: Settlement["Type"] = {
    settle: (_, payments) => Effect.sync(() => void touched.push(...payments)),
    refundsChanged: () => Effect.void,
    expire: Effect.never
  }
  return { settlement, touched }
}

/** The watcher has read the chain up to `head`. */
export const scanTo = (head: BlockRef, on = network) =>
  Effect.flatMap(Writer, (writer) =>
    writer.write(
      Effect.gen(function* () {
        yield* Ledger.startScan(on, head, "0x0")
        yield* Ledger.keepBlocks(on, [head])
        yield* Ledger.moveScan(on, head)
      })
    )
  )

/** A payment as creating one stores it. `createdAt` in Unix milliseconds, `expiresAt` in Unix seconds. */
export const owe = (
  address: string,
  over: { chain?: ChainName; currency?: PaymentCurrency; createdAt?: number; expiresAt?: number; endedAt?: number } = {}
) =>
  Effect.flatMap(Writer, (writer) =>
    writer.write(
      Effect.gen(function* () {
        const { endedAt, expiresAt = 4_000_000_000, ...rest } = over
        const { id } = yield* insertPayment({
          ...rest,
          amount: 100n,
          address: getAddress(address as Hex),
          expiresAt: expiresAt * 1000
        })
        // Its time ends as it says, whatever the clock of the chain.
        const tx = yield* Tx
        const status = endedAt === undefined ? "pending" : "expired"
        yield* tx.run("UPDATE payments SET due_at = NULL, status = ?, ended_at = ? WHERE id = ?", [
          status,
          endedAt ?? null,
          id
        ])
        return id
      })
    )
  )

/** A model whose head the watcher has read, and payments to these addresses. */
export const owing = Effect.fnUntraced(function* (name: string, ...owed: ReadonlyArray<string>) {
  const model = new BalanceModel(name)
  yield* scanTo(model.head)
  for (const address of owed) yield* owe(address)
  return model
})

/** A separate address that is compared for the first time. */
export const firstAsked = (address: string): BalanceQuery => ({
  address,
  own: true,
  known: { number: 0, balance: 0n, nonce: 0, assumed: true },
  comparedTo: 0,
  credits: [],
  withNonce: false,
  doubts: [],
  floor: 0n
})

export const depsOf = (
  client: RpcClient,
  others: ReadonlyArray<RpcClient> = [],
  chain: ChainSettings = base
): ReconcileDeps => ({
  provider: { client },
  others: others.map((other) => ({ client: other })),
  chain
})

/** The same node, which fails requests for all transactions of one of these blocks. */
export const refusing = (
  { client }: BalanceModel,
  blocks: () => ReadonlyArray<number>,
  reason: RpcReason = "garbage"
): RpcClient => ({
  ...client,
  send: (calls) =>
    calls.some(({ params: [number, full] }) => full === true && blocks().includes(Number(number)))
      ? errorOf("model", reason)
      : client.send(calls)
})

/** The same node, whose full blocks are without their transactions. */
export const hiding = ({ client }: BalanceModel): RpcClient =>
  distorted(client, ({ params }, answer) => (params[1] === true ? { ...(answer as object), transactions: [] } : answer))

/** The payments are confirmed, and a reorg removes all money above block 0. */
export const confirmedAndReorged = Effect.flatMap(Writer, (writer) =>
  writer.write(
    Effect.gen(function* () {
      const tx = yield* Tx
      yield* tx.run("UPDATE payments SET status = 'confirmed', confirmed_at = 1, ended_at = 1")
      yield* Ledger.orphanAbove(network, { number: 0, hash: "0x", time: 0 })
    })
  )
)

/** What a round at `at` would ask for. */
export const wanted = (at: BlockRef, on = network) =>
  Effect.flatMap(Reader, (reader) => Balances.dueInRound(reader, on, at, at.number, false))

/** Reads and stores what was asked for. Returns the payments whose receipts it changed. */
export const look = Effect.fnUntraced(function* (
  deps: ReconcileDeps,
  at: BlockRef,
  asked: ReadonlyArray<BalanceQuery>,
  { hopeless, ...over }: Partial<CheckedBalances> & { readonly hopeless?: ReadonlySet<string> } = {}
) {
  const writer = yield* Writer
  const { settlement, touched } = noting()
  const reading = yield* reconcileBalances(deps, at, asked, hopeless)
  const stored = yield* writer.write(
    commitBalances(settlement, { ...reading, corroborated: true, of: "round", ...over })
  )
  return { stored: stored !== undefined, touched, reading }
})

/** The watcher reads up to `at`, and a reconciliation round runs there. */
export const round = Effect.fnUntraced(function* (deps: ReconcileDeps, at: BlockRef) {
  const on: Network = { chain: deps.chain.chain, mode: deps.chain.mode }
  yield* scanTo(at, on)
  return yield* look(deps, at, yield* wanted(at, on))
})

interface Row {
  readonly address: string
  readonly amount: string
  readonly block_number: number
  readonly position: string
  readonly tx_hash: string | null
  readonly corroborated: number
}

/** The canonical receipts, by block and position. */
export const receipts = Effect.flatMap(Reader, (reader) =>
  reader.all<Row>(
    `SELECT address, amount, block_number, position, tx_hash, corroborated FROM receipts WHERE canonical = 1
     ORDER BY block_number, address, position`
  )
)

/** `<block> <position> <amount>` of each canonical receipt of an address. */
export const ledgerLines = (address: string) =>
  Effect.map(receipts, (rows) =>
    rows
      .filter((row) => row.address === address.toLowerCase())
      .map((row) => `${row.block_number} ${row.position} ${row.amount}`)
  )

/** As `ledgerLines`, without the transaction hash. */
export const ledgerLinesByAny = (address: string) =>
  Effect.map(ledgerLines(address), (lines) => lines.map((line) => line.replace(/0x\w+/, "?")))

/** The watcher's scan, as it is stored. */
export const scan = Effect.flatMap(Reader, (reader) => Ledger.scan(reader, network))

/** What works beside the watcher of that chain has, with these providers. */
export const watchOf = (providers: Providers, settlement: Settlement["Type"] = noting().settlement) =>
  Effect.map(
    Effect.zip(Reader, Writer),
    ([reader, writer]): WatchContext => ({
      network,
      chain: base,
      contracts: new Map(),
      watched: new AddressSet(),
      providers,
      reader,
      writer,
      settlement,
      heads: new Heads(providers, base.confirmations),
      headClock: new HeadClock(Number.POSITIVE_INFINITY, 0),
      troubles: new Troubles(),
      soleProviderPatience: 600_000
    })
  )
