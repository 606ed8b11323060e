import { expect, it } from "@effect/vitest"
import { markFolderOf } from "../../src/Settings/indexMarkFolder.ts"

it("the mark is in a cache directory outside the database's folder, so that a copy of that does not contain it", () => {
  const database = "/var/lib/tilld/tilld.db"
  const systemd = { CACHE_DIRECTORY: "/var/cache/tilld:/var/cache/other", HOME: "/var/lib/tilld" }
  expect(markFolderOf(database, systemd)).toBe("/var/cache/tilld")
  expect(markFolderOf(database, { XDG_CACHE_HOME: "/cache", HOME: "/home/me" })).toBe("/cache/tilld")
  expect(markFolderOf(database, { HOME: "/home/me" })).toBe("/home/me/.cache/tilld")
  // The home of the user tilld is the database's folder.
  expect(markFolderOf(database, { HOME: "/var/lib/tilld" })).toMatch(/^\/var\/tmp\/tilld-\d+$/)
  const sandboxes = ["/a", "/b"].map((of) => markFolderOf(`${of}/.sandbox/tilld.db`, { XDG_CACHE_HOME: "/cache" }))
  expect(sandboxes[0]).toMatch(/^\/cache\/tilld\/sandbox-[0-9a-f]{16}$/)
  expect(sandboxes[1]).not.toBe(sandboxes[0])
  expect(markFolderOf("/home/me/tilld.db", { HOME: "/home/me" })).toMatch(/^\/var\/tmp\/tilld-\d+$/)
})
