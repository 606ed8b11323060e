import { Effect } from "effect"
import type { ChainName } from "../../src/Domain/Chain.ts"
import { homeOn, type Order, serve, serveHere } from "../lib/daemon.ts"
import { makeInbox } from "../lib/inbox.ts"

/** Where a shop takes the webhooks of its payments. */
export const hookPath = "/hook"

/** A daemon on a chain of its own, and the receiver of its payments' webhooks. `usual`: what its payments ask for. */
const openedBy =
  (start: typeof serve) =>
  (name: ChainName, usual: Partial<Order> = {}) =>
    Effect.gen(function* () {
      const inbox = yield* makeInbox()
      const { chain, home } = yield* homeOn(name, { caFile: inbox.caFile })
      const daemon = yield* start(home)
      const order: Order = { chain: name, currency: "USDC", amount: "25000000", webhookUrl: inbox.url + hookPath }
      const create = (more: Partial<Order> = {}) => daemon.create({ ...order, ...usual, ...more })
      return { chain, inbox, home, daemon, create }
    })

/** One whose daemon is a process. */
export const hookShop = openedBy(serve)

/** One whose daemon is in the test's process. */
export const hookShopHere = openedBy(serveHere)
