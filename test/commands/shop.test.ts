import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect } from "@effect/vitest"
import { liveTest } from "../lib/scopedTest.ts"
import { besideDaemon } from "./installation.ts"

liveTest("an account's checkout is shown, changed in part, and reset to its defaults", function* () {
  const { folder, tilld } = yield* besideDaemon
  const shop = (...options: ReadonlyArray<string>) => tilld(["accounts", "shop", "--json", ...options])
  expect(yield* shop()).toMatchObject({ code: 0, stdout: '{"frameOrigins":[]}\n' })
  const frames = ["--frame-origin", "https://shop.example", "--frame-origin", "http://localhost:3000"]
  const look = [
    "--name",
    "Corner shop",
    "--accent",
    "#1f5fd1",
    "--logo",
    "corner.svg",
    "--website",
    "https://shop.example/help",
    "--contact",
    "help@shop.example"
  ]
  expect(yield* shop(...look)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(
      "The logo must be an image in the folder checkout.logo_folder, where there is none yet"
    )
  })
  mkdirSync(join(folder, "logos"))
  writeFileSync(join(folder, "logos/corner.svg"), "<svg xmlns='http://www.w3.org/2000/svg'/>")
  const changed = yield* shop(...look, ...frames)
  expect(changed.code, changed.stderr).toBe(0)
  const whole = {
    name: "Corner shop",
    accent: "#1f5fd1",
    logo: "corner.svg",
    website: "https://shop.example/help",
    contact: "help@shop.example",
    frameOrigins: ["https://shop.example", "http://localhost:3000"]
  }
  expect(JSON.parse(changed.stdout)).toEqual(whole)
  const { accent: _, ...rest } = whole
  expect(JSON.parse((yield* shop("--accent", "none")).stdout)).toEqual(rest)
  expect(JSON.parse((yield* shop("--frame-origin", "none")).stdout)).toEqual({ ...rest, frameOrigins: [] })
  expect((yield* tilld(["accounts", "shop"])).stdout).toBe(
    "name     Corner shop\naccent   tilld's own\nlogo     corner.svg\nwebsite  https://shop.example/help\ncontact  help@shop.example\ndays     of UTC, worth in USD\nminimum  none\ninvoices never repeat a reference\nplugins  off\nframes   no site may show the checkout in a frame\n"
  )

  const counted = yield* shop("--timezone", "Asia/Tokyo", "--currency", "eur", "--minimum-usd", "0.50")
  expect(JSON.parse(counted.stdout)).toMatchObject({ timezone: "Asia/Tokyo", currency: "EUR", minimumUsd: "0.50" })
  expect((yield* tilld(["accounts", "shop"])).stdout).toContain(
    "days     of Asia/Tokyo, worth in EUR\nminimum  0.50 USD\n"
  )

  expect(JSON.parse((yield* shop("--plugins", "on")).stdout)).toMatchObject({ plugins: "on" })
  expect((yield* tilld(["accounts", "shop"])).stdout).toContain("plugins  of shops may connect\n")
  expect(JSON.parse((yield* shop("--plugins", "off")).stdout)).not.toHaveProperty("plugins")
  expect(yield* shop("--plugins", "yes")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--plugins must be on, or off")
  })
  expect(yield* shop("--frame-origin", "https://shop.example/pay")).toMatchObject({
    code: 2,
    stdout: "",
    stderr: expect.stringMatching(/--frame-origin ("\S+" )?must be/)
  })
  expect(yield* shop("--account", "nobody", "--name", "x")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("There is no account nobody")
  })
  expect(JSON.parse((yield* shop()).stdout)).toEqual({
    ...rest,
    ...{ timezone: "Asia/Tokyo", currency: "EUR", minimumUsd: "0.50", frameOrigins: [] }
  })
})
