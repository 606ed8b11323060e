import { expect, it } from "vitest"
import { OpenStreams } from "../../src/Pages/OpenStreams.ts"

/** Opens as many as it may, up to 2,000; returns how many. */
const fill = (streams: OpenStreams, names: (n: number) => readonly [payment: string, client: string]) => {
  let n = 0
  while (n < 2_000 && streams.mayOpen(...names(n))) streams.opened(...names(n++))
  return n
}

it("a payment has three streams, a client twenty, and all have a thousand", () => {
  expect(fill(new OpenStreams(), (n) => ["one", `client ${n}`])).toBe(3)
  expect(fill(new OpenStreams(), (n) => [`payment ${n}`, "one"])).toBe(20)
  expect(fill(new OpenStreams(), (n) => [`payment ${n}`, `client ${n}`])).toBe(1_000)
})

it("a stream that has closed makes room for another, and leaves nothing behind", () => {
  const streams = new OpenStreams()
  fill(streams, () => ["one", "one"])
  streams.closed("one", "one")
  expect(fill(streams, () => ["one", "one"])).toBe(1)
  for (let n = 0; n < 3; n++) streams.closed("one", "one")
  expect(streams.size).toBe(0)
})
