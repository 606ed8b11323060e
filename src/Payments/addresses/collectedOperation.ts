import { Clock, Effect, Schema } from "effect"
import { ChainField, HashField, ModeField, maybe } from "../../Auth/inputFields.ts"
import { lazily, operation } from "../../Auth/operation.ts"
import { BaseUnits } from "../../Domain/Amount.ts"

/** Transfers that one request notes at most. */
export const mostCollected = 500

const Transfer = Schema.Struct({
  hash: HashField,
  /** The place of the move in its plan. */
  place: Schema.NonNegativeInt,
  address: Schema.String,
  to: Schema.String,
  currency: Schema.String,
  amount: BaseUnits,
  /** Of the address's own transaction. */
  nonce: maybe(Schema.NonNegativeInt)
})

/** Notes what a broadcast has moved; the same transfers again change nothing. */
export const recordCollected = operation({
  name: "sweep record",
  summary: "Note what was moved away from receiving addresses, as tilld sweep broadcast does at its end",
  needs: "store",
  input: {
    chain: ChainField,
    mode: ModeField,
    digest: HashField,
    transfers: Schema.Array(Transfer).pipe(Schema.maxItems(mostCollected))
  },
  output: Schema.Struct({ added: Schema.Number }),
  refusals: [],
  audit: ({ chain, digest, mode, transfers }) => ({ chain, mode, digest, transfers: transfers.length }),
  run: Effect.fnUntraced(function* ({ chain, mode, transfers }) {
    const repo = yield* lazily(() => import("./CollectedRepo.ts"))
    const { Tx, Writer } = yield* lazily(() => import("../../Sql.ts"))
    const writer = yield* Writer
    const now = yield* Clock.currentTimeMillis
    const given = transfers.map(({ amount, ...transfer }) => ({ ...transfer, amount: `${amount}` }))
    const added = yield* writer.write(Effect.flatMap(Tx, (tx) => repo.add(tx, { chain, mode }, given, now)))
    return { added }
  })
})
