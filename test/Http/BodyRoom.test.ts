import { expect, it } from "@effect/vitest"
import { BodyRoom } from "../../src/Http/requests.ts"

/** Takes byte by byte, until there is no room or `most` are taken. */
const fill = (room: BodyRoom, client: string, most = Number.POSITIVE_INFINITY, piece = 1) => {
  let bytes = 0
  while (bytes < most && room.take(client, piece)) bytes += piece
  return bytes
}

it("however many clients take room, some is left for the body of another one", () => {
  const body = 64 * 1024
  const room = new BodyRoom(32 * 1024 * 1024)
  const taken = Array.from({ length: 100 }, (_, client) => fill(room, `198.51.100.${client}`, 3 * body, 1024))
  expect(Math.max(...taken)).toBe(3 * body)
  expect(fill(room, "192.0.2.1", body, 1024)).toBe(body)
  room.giveBack("192.0.2.1", body)
  expect(fill(room, "192.0.2.1", body, 1024)).toBe(body)
})

it("one client has an eighth of what is free, and what is given back is free again", () => {
  const room = new BodyRoom(800)
  // What it has itself is not free: an eighth of 712, and a byte.
  expect(fill(room, "one")).toBe(89)
  expect(fill(room, "two")).toBe(79)
  room.giveBack("one", 40)
  expect(fill(room, "one")).toBe(31)
  room.giveBack("one", 80)
  room.giveBack("two", 79)
  expect(fill(room, "three")).toBe(89)
})
