// @effect-diagnostics globalTimers:off
import dns from "node:dns"
import { Effect } from "effect"
import { vi } from "vitest"

interface Dialled {
  oncomplete: (...result: ReadonlyArray<unknown>) => void
}
type Connect = (dialled: Dialled, ...more: ReadonlyArray<unknown>) => number

const { TCP } = (
  process as unknown as { binding: (name: string) => { TCP: { prototype: Record<string, Connect> } } }
).binding("tcp_wrap")

/** Completes each TCP connect of this process so many milliseconds late, as a slow line does, until the scope closes. */
export const slowConnects = (millis: number) =>
  Effect.acquireRelease(
    Effect.sync(() =>
      ["connect", "connect6"].map((name) => {
        const connect = TCP.prototype[name] as Connect
        return vi.spyOn(TCP.prototype, name).mockImplementation(function (this: unknown, dialled, ...more) {
          const complete = dialled.oncomplete
          dialled.oncomplete = (...result) => void setTimeout(() => complete.apply(dialled, [...result]), millis)
          return connect.call(this, dialled, ...more)
        })
      })
    ),
    (spies) => Effect.sync(() => spies.map((spy) => spy.mockRestore()))
  )

/** Lets the system resolve every name to these addresses, until the scope closes. */
export const resolvingTo = (...addresses: ReadonlyArray<string>) => {
  const found = addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }))
  return Effect.acquireRelease(
    Effect.sync(() => [
      vi.spyOn(dns.promises, "lookup").mockImplementation((async () => found) as never),
      vi
        .spyOn(dns, "lookup")
        .mockImplementation(((_: string, __: object, back: (error: null, found: object) => void) =>
          back(null, found)) as never)
    ]),
    (spies) => Effect.sync(() => spies.map((spy) => spy.mockRestore()))
  )
}
