import { expect, it } from "@effect/vitest"
import { Client } from "undici"
import { IdleConnections } from "../../../src/Webhooks/transport/IdleConnections.ts"
import type { Connection } from "../../../src/Webhooks/transport/targetConnection.ts"

const connection = (origin: string, openedAt = 0): Connection => ({
  origin,
  address: "127.0.0.1",
  client: new Client(origin),
  openedAt
})

it("gives the connection of an origin that was used last, and each once", () => {
  const idle = new IdleConnections()
  const [first, second, other] = [connection("https://a"), connection("https://a"), connection("https://b")]
  for (const one of [first, second, other]) idle.put(one, 0)
  expect(idle.take("https://a")).toBe(second)
  expect(idle.take("https://a")).toBe(first)
  expect(idle.take("https://a")).toBeUndefined()
  idle.forget(other)
  expect(idle.take("https://b")).toBeUndefined()
})

it("closes what is older than five minutes", () => {
  const idle = new IdleConnections()
  const [young, old] = [connection("https://a", 1_000), connection("https://a", 0)]
  idle.put(young, 300_001)
  idle.put(old, 300_001)
  expect([young.client.destroyed, old.client.destroyed]).toEqual([false, true])
  expect(idle.take("https://a")).toBe(young)
})

it("keeps 256: the one used longest ago makes room", () => {
  const idle = new IdleConnections()
  const all = Array.from({ length: 257 }, (_, i) => connection(`https://shop${i}`))
  for (const one of all) idle.put(one, 0)
  expect(all.filter(({ client }) => client.destroyed)).toEqual([all[0]])
  expect(idle.take("https://shop0")).toBeUndefined()
  idle.closeAll()
  expect(all.every(({ client }) => client.destroyed)).toBe(true)
})
