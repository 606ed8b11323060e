import { Effect } from "effect"
import type { Network } from "../Domain/Chain.ts"
import { listReceived } from "../Payments/addresses/receivedOperation.ts"
import type { ReceivedPayment } from "../Payments/addresses/receivedPayment.ts"
import { ask, type ControlTarget } from "./askDaemon.ts"

/** All receiving addresses to which money came on a chain, page by page. */
export const allReceived = Effect.fn("commands.allReceived")(function* (
  place: ControlTarget,
  network: Network,
  account: string | undefined
) {
  const found: Array<ReceivedPayment> = []
  let after: number | undefined = 0
  while (after !== undefined) {
    const page: { readonly addresses: ReadonlyArray<ReceivedPayment>; readonly next?: number } = yield* ask(
      place,
      listReceived,
      { ...network, after, ...(account === undefined ? {} : { account }) }
    )
    found.push(...page.addresses)
    after = page.next
  }
  return found
})
