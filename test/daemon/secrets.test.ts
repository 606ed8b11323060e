import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { Webhook as StandardWebhook } from "standardwebhooks"
import { Webhook as SvixWebhook } from "svix"
import { verifySignature } from "../../src/Sandbox/Receiver.ts"
import { localChain, makeHome, serve } from "../lib/daemon.ts"
import { type Delivered, makeInbox } from "../lib/inbox.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { tilldJson } from "../lib/tilld.ts"

interface Secret {
  readonly secret: string
  readonly previous?: { readonly secret: string; readonly until: string }
}

/** Who can verify a webhook with a secret. */
const verifiers = ({ request }: Delivered, secret: string) => {
  const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]))
  const verifies = (Library: typeof StandardWebhook | typeof SvixWebhook) => {
    try {
      new Library(secret).verify(request.body, headers)
      return true
    } catch {
      return false
    }
  }
  return [
    ...(verifySignature(request, secret) ? ["X-Service-Signature"] : []),
    ...(verifies(StandardWebhook) ? ["standardwebhooks"] : []),
    ...(verifies(SvixWebhook) ? ["svix"] : [])
  ]
}

const everybody = ["X-Service-Signature", "standardwebhooks", "svix"]

liveTest("a rotation counts in the running daemon when its command returns", function* () {
  const inbox = yield* makeInbox()
  const home = yield* makeHome({ chains: new Map([["base", yield* localChain("base")]]), caFile: inbox.caFile })
  const daemon = yield* serve(home)
  const secret = (...args: ReadonlyArray<string>) =>
    tilldJson<Secret>(["webhooks", "secret", "--mode", "test", "--config", home.config, ...args])
  const deliver = Effect.gen(function* () {
    const webhookUrl = `${inbox.url}/hook`
    const payment = yield* daemon.create({ chain: "base", currency: "USDC", amount: "25000000", webhookUrl })
    return yield* inbox.next("/hook", payment)
  })

  const first = yield* secret()
  expect(first).toEqual({ secret: expect.stringMatching(/^whsec_/) })
  const before = yield* deliver
  expect(verifiers(before, first.secret)).toEqual(everybody)
  expect(before.request.rawHeaders).toContain("X-Service-Signature")
  expect(before.request.headers["webhook-id"]).toBe(before.event.id)

  const second = yield* secret("--rotate", "--overlap", "1h")
  expect(second.previous?.secret).toBe(first.secret)
  expect(yield* secret()).toEqual(second)
  const between = yield* deliver
  expect(verifiers(between, first.secret)).toEqual(everybody)
  expect(verifiers(between, second.secret)).toEqual(["standardwebhooks", "svix"])

  const third = yield* secret("--rotate", "--overlap", "0s")
  const after = yield* deliver
  expect(verifiers(after, third.secret)).toEqual(everybody)
  for (const { secret } of [first, second]) expect(verifiers(after, secret)).toEqual([])
})
