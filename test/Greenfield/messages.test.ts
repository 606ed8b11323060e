// What plugins are told of an invoice, by what they know: pure.
import { describe, expect, it } from "@effect/vitest"
import { messagesOf, type Told, toldAfter } from "../../src/Greenfield/messages.ts"
import type { PluginStanding, PluginTransfer } from "../../src/Greenfield/status.ts"

const transfer = (id: string, status: PluginTransfer["status"], isLate = false): PluginTransfer => ({
  ...{ id, at: 1, amount: 1n, status, isLate }
})

/** The messages of standings that follow one another. */
const toldOf = (...standings: ReadonlyArray<Omit<PluginStanding, "payment">>) => {
  let told: Told | undefined
  return standings.map((one, at) => {
    const now = { ...one, payment: undefined }
    const messages = messagesOf(told, now)
    told = toldAfter(told, now, messages, at)
    return messages.map(({ flags, kind }) => [kind, flags["afterExpiration"]])
  })
}

const start = { status: "New", additional: "None", transfers: [] } as const

describe("messages of an invoice", () => {
  it("a part that came in time stays in time when the invoice expires", () => {
    const part = (status: PluginTransfer["status"]) => [transfer("a", status)]
    expect(
      toldOf(
        start,
        { status: "New", additional: "PaidPartial", transfers: part("Processing") },
        { status: "Expired", additional: "PaidPartial", transfers: part("Settled") }
      )
    ).toEqual([
      [["InvoiceCreated", undefined]],
      [["InvoiceReceivedPayment", false]],
      [
        ["InvoicePaymentSettled", false],
        ["InvoiceExpired", undefined]
      ]
    ])
  })
  it("late money stays late when a person takes it", () => {
    const late = transfer("a", "Processing", true)
    expect(
      toldOf(
        start,
        { status: "Expired", additional: "None", transfers: [] },
        { status: "Expired", additional: "PaidLate", transfers: [late] },
        { status: "Settled", additional: "Marked", transfers: [transfer("a", "Settled")] }
      ).slice(2)
    ).toEqual([
      [["InvoiceReceivedPayment", true]],
      [
        ["InvoicePaymentSettled", true],
        ["InvoiceSettled", undefined]
      ]
    ])
  })
  it("many transfers are told up to a bound, and each status still is", () => {
    const many = Array.from({ length: 60 }, (_, i) => transfer(`${i}`, "Processing"))
    const messages = toldOf(
      start,
      { status: "New", additional: "PaidPartial", transfers: many.slice(0, 45) },
      { status: "Processing", additional: "None", transfers: many },
      { status: "Settled", additional: "None", transfers: many.map((one) => ({ ...one, status: "Settled" })) }
    )
    expect(messages.map(({ length }) => length)).toEqual([1, 39, 1, 1])
  })
})
