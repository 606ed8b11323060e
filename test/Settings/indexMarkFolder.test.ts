import { expect, it } from "@effect/vitest"
import { markFolderOf } from "../../src/Settings/indexMarkFolder.ts"

it("the mark is kept in a cache directory that a copy of the database's folder does not hold", () => {
  const database = "/var/lib/tilld/tilld.db"
  const systemd = { CACHE_DIRECTORY: "/var/cache/tilld:/var/cache/other", HOME: "/var/lib/tilld" }
  expect(markFolderOf(database, systemd)).toBe("/var/cache/tilld")
  expect(markFolderOf(database, { XDG_CACHE_HOME: "/cache", HOME: "/home/me" })).toBe("/cache/tilld")
  expect(markFolderOf(database, { HOME: "/home/me" })).toBe("/home/me/.cache/tilld")
  // The user tilld's home is the database's folder.
  expect(markFolderOf(database, { HOME: "/var/lib/tilld" })).toMatch(/^\/var\/tmp\/tilld-\d+$/)
  expect(markFolderOf("/home/me/tilld.db", { HOME: "/home/me" })).toMatch(/^\/var\/tmp\/tilld-\d+$/)
})
