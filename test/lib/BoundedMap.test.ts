import { expect, it } from "@effect/vitest"
import { BoundedMap } from "../../src/lib/BoundedMap.ts"

it("beyond its capacity a map drops what was set longest ago", () => {
  const map = new BoundedMap<string, number>(2)
  map.set("a", 1).set("b", 2).set("a", 3).set("c", 4)
  expect([...map]).toEqual([
    ["a", 3],
    ["c", 4]
  ])
})
