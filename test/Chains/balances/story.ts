import { it } from "@effect/vitest"
import { Effect, type Layer, Logger, type Scope } from "effect"
import type { YieldWrap } from "effect/Utils"
import type { RpcClient, RpcRequest } from "../../../src/Chains/rpc/Rpc.ts"
import type { RpcReason } from "../../../src/Chains/rpc/RpcError.ts"
import type { tempStore } from "../../lib/store.ts"
import { errorOf } from "../providing.ts"
import { BalanceModel } from "./BalanceModel.ts"
import { inStore, owing } from "./reconcileWorld.ts"

type Step = YieldWrap<Effect.Effect<unknown, unknown, Layer.Layer.Success<typeof tempStore> | Scope.Scope>>

/**
 * A test on a new store: the watcher has read the first block of a model, and has payments to these addresses.
 * `logged`: the messages so far.
 */
export const story = (
  title: string,
  owed: ReadonlyArray<string>,
  tell: (model: BalanceModel, logged: Array<string>) => Generator<Step, void, never>
) =>
  it.scoped(title, () => {
    const logged: Array<string> = []
    const logger = Logger.make(({ message }) => void logged.push(String(Array.isArray(message) ? message[0] : message)))
    return Effect.flatMap(owing(title, ...owed), (model) => Effect.gen(() => tell(model, logged))).pipe(
      Effect.provide(Logger.replace(Logger.defaultLogger, logger)),
      inStore
    )
  })

/** A test on a model alone. */
export const modelStory = (
  title: string,
  tell: (model: BalanceModel) => Generator<YieldWrap<Effect.Effect<unknown, unknown>>, void, never>
) => it.effect(title, () => Effect.gen(() => tell(new BalanceModel(title))))

/** The same node, which fails batches with such a call. */
export const failing = (
  client: RpcClient,
  fails: (call: RpcRequest) => boolean,
  reason: RpcReason = "state"
): RpcClient => ({
  ...client,
  send: (calls) => (calls.some(fails) ? errorOf("model", reason) : client.send(calls))
})

/** A call that asks for a state of an address. */
export const ofState = ({ method }: RpcRequest) => method === "eth_getBalance"
/** A call that asks for a trace. */
export const ofTrace = ({ method }: RpcRequest) => method === "debug_traceTransaction"
/** A call that asks for a block with all its transactions. */
export const ofFullBlock = ({ method, params }: RpcRequest) => method === "eth_getBlockByNumber" && params[1] === true
