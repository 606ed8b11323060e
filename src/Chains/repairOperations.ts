/** Operations to repair a ledger that lacks money: rescan blocks, or claim the money of one transaction. */
import { Effect, Schema } from "effect"
import { Chains } from "../Chains.ts"
import { getAddress } from "../Domain/Address.ts"
import { ChainName, Mode, type Network, networkKey } from "../Domain/Chain.ts"
import { RepairRefused } from "../Domain/RepairErrors.ts"
import { must } from "../lib/annotations.ts"
import { ChainField, HashField, ModeField, maybe } from "../Operations/inputFields.ts"
import { operation, withFlag } from "../Operations/operation.ts"
import { Settings } from "../Settings.ts"
import { StoreUnavailable } from "../Sql/Db.ts"
import { claim } from "./repair/claim.ts"
import { rescan } from "./repair/rescan.ts"
import type { ExclusiveWork } from "./scan/WatchContext.ts"

/** The daemon has 40 seconds for a request, and a part of a range that fails is retried for 20. */
const rescanBudget = "5 seconds"

/** Carries out a repair between two ticks of the network's watcher. Its failure becomes the refusal. */
const repairing = <A, E extends { readonly message: string }, R>(
  network: Network,
  repair: (exclusively: ExclusiveWork) => Effect.Effect<A, E, R>
) =>
  Effect.gen(function* () {
    const configured = (yield* Settings).chains.map(networkKey)
    if (!configured.includes(networkKey(network))) {
      return yield* new RepairRefused({
        message: `[chains.${networkKey(network)}] is not configured; there are ${configured.join(", ")}`
      })
    }
    const chains = yield* Chains
    return yield* repair(chains.exclusively(network))
  }).pipe(
    Effect.mapError((error) =>
      error instanceof StoreUnavailable || error instanceof RepairRefused
        ? error
        : new RepairRefused({ message: error.message })
    )
  )

const block = (about: string) => ({ about, value: "BLOCK" })
const BlockNumber = must("be the number of a block", Schema.Int.pipe(Schema.nonNegative()))

export const rescanBlocks = operation({
  name: "rescan",
  summary: "Read blocks again, and store what is missing; what is there stays as it is",
  input: {
    chain: ChainField,
    mode: ModeField,
    from: withFlag(BlockNumber, block("The first block to read")),
    to: withFlag(maybe(BlockNumber), block("The last one; otherwise the last that the daemon has read"))
  },
  /** Of one part of the range: while `through` is below `to`, the next request has `through` + 1 as `from`. */
  output: Schema.Struct({
    /** The last block that was read in this part. */
    through: Schema.Number,
    /** The end of the range: the given block, otherwise the scanned head. */
    to: Schema.Number,
    receipts: Schema.Number,
    added: Schema.Number
  }),
  refusals: [RepairRefused],
  audit: ({ chain, from, mode, to }) => ({ chain, mode, from, to }),
  run: Effect.fnUntraced(function* ({ chain, mode, ...range }) {
    return yield* repairing({ chain, mode }, (exclusively) => rescan(exclusively, range, rescanBudget))
  })
})

const Credit = Schema.Struct({
  address: Schema.String,
  currency: Schema.String,
  amount: Schema.BigInt,
  /** Absent when the address was handed out by a database that was lost. */
  payment: Schema.optional(Schema.String)
})

export const claimTransaction = operation({
  name: "claim",
  summary: "Count the money of one transaction that was missed, or say why it pays no address of this tilld",
  input: {
    chain: ChainField,
    mode: ModeField,
    txHash: withFlag(HashField, {
      about: "The transaction: 0x and 64 hexadecimal digits",
      value: "TXHASH",
      isArgument: true
    })
  },
  output: Schema.Struct({
    txHash: Schema.String,
    blockNumber: Schema.Number,
    blockHash: Schema.String,
    credits: Schema.Array(Credit),
    added: Schema.Number
  }),
  refusals: [RepairRefused],
  audit: ({ chain, mode, txHash }) => ({ chain, mode, txHash }),
  run: Effect.fnUntraced(function* ({ chain, mode, txHash }) {
    const found = yield* repairing({ chain, mode }, (exclusively) => claim(exclusively, txHash))
    const credits = found.credits.map((credit) => ({ ...credit, address: getAddress(credit.address) }))
    return { txHash, ...found, credits }
  })
})

/** The configured networks with their tokens, for commands that show amounts and may not read the configuration. */
export const listTokens = operation({
  name: "tokens",
  summary: "Show the tokens of each configured network, with their decimals",
  input: {},
  output: Schema.Array(
    Schema.Struct({
      chain: ChainName,
      mode: Mode,
      tokens: Schema.Array(Schema.Struct({ symbol: Schema.String, decimals: Schema.Number }))
    })
  ),
  refusals: [],
  run: Effect.fnUntraced(function* () {
    return (yield* Settings).chains
  })
})
