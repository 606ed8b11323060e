import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { examinePolicies } from "../../../src/Doctor/chains.ts"
import { Reader, Tx, Writer } from "../../../src/Sql.ts"
import { alice, aroundSome, aroundTwo, health, second, upTo, usdc, watchedPayment, withTwo } from "../around.ts"
import { ModelChain, token } from "../ModelChain.ts"
import { pass, scanned, until, watch } from "../world.ts"

const settings = { ...withTwo, policies: [{ aboveUsd: "100", require: "finalized" as const }] }
const finalized = Effect.flatMap(Reader, (reader) =>
  reader.get<{ finalized: number | null }>("SELECT finalized_number AS finalized FROM scans")
)
/** The block time is 10 seconds. */
const hours = (count: number) => count * 360

describe("a tag that a policy requires", () => {
  it.scoped("is read from the other provider if the serving one refuses it, and counts after ten minutes", () => {
    const first = new ModelChain(10)
    const other = first.twin()
    other.finalized = 7
    return Effect.gen(function* () {
      yield* watchedPayment(alice)
      yield* pass("9 minutes")
      expect((yield* finalized)?.finalized).toBe(null)
      expect(yield* upTo(10)).toMatchObject({
        ready: true,
        reason: expect.stringMatching(/only one provider reports the tag "finalized".*Remedy: .*rpc_urls/)
      })
      yield* pass("2 minutes")
      expect((yield* until(finalized, (row) => row?.finalized != null))?.finalized).toBe(7)
      const now = yield* upTo(10)
      expect(now).toMatchObject({ ready: true })
      expect(now).not.toHaveProperty("reason")
    }).pipe(aroundTwo(first, other, { ...settings, pollInterval: Duration.seconds(10) }))
  })

  it.scoped.each([0, 1, 2])("and that only provider %d of three reports counts after ten minutes", (place) => {
    const first = new ModelChain(10)
    const nodes = [first, first.twin(), first.twin()]
    const knowing = nodes[place] ?? first
    knowing.finalized = 7
    return Effect.gen(function* () {
      yield* watchedPayment(alice)
      yield* pass("9 minutes")
      expect((yield* finalized)?.finalized).toBe(null)
      yield* pass("2 minutes")
      expect((yield* until(finalized, (row) => row?.finalized != null))?.finalized).toBe(7)
    }).pipe(aroundSome(nodes, { ...settings, pollInterval: Duration.seconds(10) }))
  })

  it.scoped("and that one provider reports while the other does not know the tag does not count at once", () => {
    const first = new ModelChain(10)
    const other = first.twin()
    first.finalized = 7
    other.finalized = 7
    return Effect.gen(function* () {
      yield* watchedPayment(alice)
      yield* until(finalized, (row) => row?.finalized === 7)
      first.finalized = 10
      for (let blip = 0; blip < 3; blip++) {
        other.finalized = undefined
        yield* pass("9 minutes")
        expect((yield* finalized)?.finalized).toBe(7)
        other.finalized = 7
        yield* pass("1 minute")
        expect((yield* finalized)?.finalized).toBe(7)
      }
      other.finalized = undefined
      yield* pass("11 minutes")
      expect((yield* finalized)?.finalized).toBe(10)
    }).pipe(aroundTwo(first, other, { ...settings, pollInterval: Duration.seconds(10) }))
  })

  it.scoped("and that one provider reports while the other does not respond counts only after ten minutes", () => {
    const first = new ModelChain(10)
    const other = first.twin()
    return Effect.gen(function* () {
      yield* watchedPayment(alice)
      other.failure = "unreachable"
      first.finalized = 7
      yield* pass("5 minutes")
      expect((yield* finalized)?.finalized).toBe(null)
      yield* pass("10 minutes")
      expect((yield* finalized)?.finalized).toBe(7)
    }).pipe(aroundTwo(first, other, { ...settings, pollInterval: Duration.seconds(30) }))
  })

  it.scoped(
    "and that no provider knows makes the chain not ready, even without watched addresses, until one does",
    () => {
      const first = new ModelChain(10)
      const other = first.twin()
      return Effect.gen(function* () {
        yield* watch
        const now = yield* until(health, (state) => state?.reason !== undefined)
        expect(now).toMatchObject({ ready: false, head: 10 })
        expect(now?.reason).toMatch(/"finalized".*chains\.ethereum\.test\.policy.*Remedy: .*rpc_urls/)
        other.finalized = 7
        yield* pass("10 minutes")
        expect((yield* until(health, (state) => state?.ready === true))?.reason).toMatch(/^only one provider reports/)
        yield* pass("10 minutes")
        expect(yield* until(health, (state) => state?.reason === undefined)).toMatchObject({ ready: true })
      }).pipe(aroundTwo(first, other, settings))
    }
  )

  it.scoped("and that was known once is not missing because no provider reports it for a while", () => {
    const first = new ModelChain(10)
    const other = first.twin()
    first.finalized = 7
    other.finalized = 7
    return Effect.gen(function* () {
      yield* watchedPayment(alice)
      yield* until(finalized, (row) => row?.finalized === 7)
      first.finalized = undefined
      other.finalized = undefined
      for (let i = 0; i < 30; i++) yield* second
      const now = yield* upTo(10)
      expect(now).toMatchObject({ ready: true })
      expect(now).not.toHaveProperty("reason")
    }).pipe(aroundTwo(first, other, settings))
  })

  it.scoped("and that stalls while a payment waits for it is reported by health", () => {
    const first = new ModelChain(10)
    const other = first.twin()
    for (const node of [first, other]) node.finalized = 7
    return Effect.gen(function* () {
      const payment = yield* watchedPayment(alice)
      first.mine(token(usdc, alice, 5n))
      first.mineMany(hours(1))
      yield* second
      yield* until(scanned, (row) => row?.head_number === first.height)
      yield* pass("20 seconds")
      expect(yield* upTo(first.height)).not.toHaveProperty("reason")
      const writer = yield* Writer
      const detecting = (usdValue: string | null) =>
        writer.write(
          Effect.flatMap(Tx, (tx) =>
            tx.run("UPDATE payments SET status = 'detecting', usd_value = ? WHERE id = ?", [usdValue, payment.id])
          )
        )
      // Its value is too low for the policy.
      yield* detecting("99")
      yield* pass("20 seconds")
      expect(yield* upTo(first.height)).not.toHaveProperty("reason")
      yield* detecting(null)
      yield* pass("20 seconds")
      const now = yield* until(health, (state) => state?.reason !== undefined)
      expect(now).toMatchObject({ ready: true, reason: expect.stringMatching(/finality stalls: .* block 7 is 1 h/) })
      for (const node of [first, other]) node.finalized = first.height
      yield* pass("20 seconds")
      yield* until(health, (state) => state !== undefined && state.reason === undefined)
    }).pipe(aroundTwo(first, other, settings))
  })

  it.effect("makes doctor fail if no provider knows it", () =>
    Effect.gen(function* () {
      const first = new ModelChain(10)
      const other = first.twin()
      const head = { number: 10, hash: "", parentHash: "", time: 0, logsBloom: undefined }
      const look = examinePolicies(settings, [
        { client: first.client, head },
        { client: other.client, head }
      ])
      expect(yield* look).toMatchObject([{ status: "fail", name: "ethereum.test policy finalized" }])
      other.finalized = 7
      expect(yield* look).toMatchObject([{ status: "ok", finding: "the newest finalized block is 7" }])
      expect(yield* examinePolicies({ ...settings, policies: [] }, [{ client: first.client, head }])).toEqual([])
    })
  )
})
