import { type AddressInfo, createServer } from "node:net"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { localChain, makeHome, serve } from "../lib/daemon.ts"
import { makeInbox } from "../lib/inbox.ts"
import { liveTest } from "../lib/scopedTest.ts"

/** Counts who dials it, and hangs up. */
const proxy = Effect.gen(function* () {
  let dialled = 0
  const server = createServer((socket) => {
    dialled++
    socket.destroy()
  })
  const listening = Effect.async<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void)))
  yield* Effect.acquireRelease(listening, () => Effect.sync(() => server.close()))
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, dialled: () => dialled }
})

liveTest("proxies of the environment get no webhook", function* () {
  const { dialled, url } = yield* proxy
  const inbox = yield* makeInbox()
  const home = yield* makeHome({ chains: new Map([["base", yield* localChain("base")]]), caFile: inbox.caFile })
  const names = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]
  const daemon = yield* serve(home, undefined, {
    ...Object.fromEntries(names.map((name) => [name, url])),
    NODE_USE_ENV_PROXY: "1"
  })
  const webhookUrl = `${inbox.url}/hook`
  const payment = yield* daemon.create({ chain: "base", currency: "USDC", amount: "25000000", webhookUrl })
  yield* inbox.take("/hook", payment, "payment.created")
  expect(dialled()).toBe(0)
})
