import { Effect } from "effect"
import type { BlockRef } from "../Domain/Receipt.ts"
import { ask, findHeader } from "./calls.ts"
import type { Provider, Providers } from "./Providers.ts"
import { RpcError } from "./Rpc.ts"

/** So many blocks above what has been read, a head is asked for once more. */
const farAhead = 1_000

/**
 * Fails unless a head that is far above the scanned one is there at another look, of another provider where there is one.
 * Where no block below it is read, a single wrong number would be kept, and every right one be behind it for ever.
 */
export const checkAhead = Effect.fn("Watcher.checkAhead")(function* (
  providers: Providers,
  provider: Provider,
  after: BlockRef,
  { hash, number }: BlockRef
) {
  if (number - after.number <= farAhead) return
  const { client } = (yield* providers.other(provider)) ?? provider
  const [again] = yield* ask(client, [findHeader(number)])
  if (again?.hash === hash) return
  const detail = `its head is ${number} with ${hash}, and at another look that is ${again?.hash ?? "none"}`
  const { host } = provider.client
  return yield* new RpcError({ host, method: "eth_getBlockByNumber", reason: "inconsistent", detail })
})
