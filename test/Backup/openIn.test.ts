import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { openIn } from "../../src/Backup/differences.ts"
import * as Sql from "../../src/Sql.ts"
import { Reader } from "../../src/Sql.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { change, installation, paid } from "./backing.ts"

const hour = 3_600_000
const day = 24 * hour

liveTest("the last day of a backup is that of its newest payment, however old the backup is", function* () {
  const { path } = yield* installation
  const newest = 5 * day
  yield* change(path, ...paid(3, newest - day + 1), ...paid(4, newest))
  const open = (now: number, since: number | null) =>
    Effect.provide(
      Effect.flatMap(Reader, (reader) => openIn(reader, now, since)),
      Sql.layer(path)
    )
  const { openPayments, paymentsInLastDay } = yield* open(30 * day, newest)
  expect(paymentsInLastDay).toBe(2)
  expect(openPayments).toMatchObject([{ chain: "base", mode: "test", status: "pending", count: 5, pastDue: 5 }])
  expect((yield* open(newest, newest)).openPayments).toMatchObject([{ count: 5, pastDue: 4 }])
  expect((yield* open(newest + hour, null)).paymentsInLastDay).toBe(1)
})
