import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { bodyLimit } from "../../src/Domain/ApiError.ts"
import { delaysInWords, failedAfter, lastDelay, mostAttempts, ordinal } from "../../src/Domain/DeliveryObject.ts"
import { root } from "../lib/tilld.ts"

const textOf = (path: string) => readFileSync(join(root, path), "utf8").replaceAll(/\s+/g, " ")

it("the documents state the retries and the body limit that the code has", () => {
  expect(lastDelay).toBe("24 hours")
  expect([ordinal(failedAfter), ordinal(mostAttempts), mostAttempts]).toEqual(["fifth", "sixth", 6])
  expect(textOf("docs/webhooks.md")).toContain(`Retries come ${delaysInWords} after the previous failed attempt`)
  expect(textOf("docs/webhooks.md")).toContain("After the fifth failure the delivery is `failed`")
  expect(textOf("docs/deliveries.md")).toContain("once its fifth attempt has failed")
  expect(textOf("docs/monitoring.md")).toContain("deliveries whose fifth attempt failed")
  expect(textOf("config/tilld.rules.yml")).toContain("failed five times: one attempt is left, a day later")
  expect(textOf("README.md")).toContain("up to six attempts over a day")
  expect(textOf("docs/promises.md")).toContain("six times over a day")
  // A row whose attempts are more is refused: a longer schedule needs a migration.
  expect(textOf("src/migrations/0001_start/webhooks.ts")).toContain(`CHECK (attempts BETWEEN 0 AND ${mostAttempts})`)
  expect(textOf("docs/limits.md")).toContain(`| ${bodyLimit}, JSON nested`)
})
