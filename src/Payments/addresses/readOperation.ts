import { Effect, Schema } from "effect"
import { ChainField, ModeField, maybe } from "../../Auth/inputFields.ts"
import { lazily, operation } from "../../Auth/operation.ts"

/** Money that the daemon has not seen may be a customer's: it looks before anything is collected. */
export const readChain = operation({
  name: "sweep read",
  summary: "Have the daemon look at a chain, and tell up to which block it has read it",
  needs: "daemon",
  input: { chain: ChainField, mode: ModeField },
  output: Schema.Struct({ head: maybe(Schema.Number) }),
  refusals: [],
  run: Effect.fnUntraced(function* ({ chain, mode }) {
    const { Chains } = yield* lazily(() => import("../../Chains.ts"))
    const { health, look } = yield* Chains
    yield* look({ chain, mode })
    const head = (yield* health).find((one) => one.chain === chain && one.mode === mode)?.head
    return head === undefined ? {} : { head }
  })
})
