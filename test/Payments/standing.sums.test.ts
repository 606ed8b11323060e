import { expect } from "@effect/vitest"
import { Array as Arr, Effect, Either, Record, Runtime, TestClock } from "effect"
import * as fc from "fast-check"
import { getAddress, numberToHex, pad } from "viem"
import * as BooksRepo from "../../src/Books/BooksRepo.ts"
import type { Settlement } from "../../src/Chains/ledger/SettlementTag.ts"
import { newPaymentId } from "../../src/Domain/Ids.ts"
import { addUp } from "../../src/Domain/LedgerRow.ts"
import type { RefundPart } from "../../src/Domain/Refund.ts"
import { accept } from "../../src/Payments/decisions/accept.ts"
import { changed, type RefundRequest } from "../../src/Payments/decisions/refund.ts"
import * as Exceptions from "../../src/Payments/ExceptionsRepo.ts"
import * as Repo from "../../src/Payments/PaymentsRepo.ts"
import * as Refunds from "../../src/Payments/RefundsRepo.ts"
import { Reader } from "../../src/Sql.ts"
import { scopedTest } from "../lib/scopedTest.ts"
import { inTransaction } from "../lib/store.ts"
import { besideNode, owner, refunded } from "./deciding.ts"
import {
  confirmations,
  elsewhere,
  network,
  payAgain,
  startScans,
  startWith,
  tick,
  transfer,
  twoChains
} from "./settling.ts"

/**
 * The books of one payment of 1000, written apart from the fold. Of each piece, the money of a transaction in a currency:
 *
 *   what came = what counts + what is open + what is too small + what went back
 *
 * "What counts" is credited by the chain or accepted by a person: `credited` of the ledger's receipts less that of its refunds.
 * "What is open" is the amount of its open exceptions; "what went back" the parts of refunds that stand. Of the payment's own
 * currency, `received` is what came without what is too small, and `kept` is that less what was sent back.
 */
type Role = "own" | "apart" | "stray" | "small"
interface Piece {
  readonly hash: string
  readonly on: string
  readonly amount: bigint
  readonly at: number
  role: Role
  /** Its open money of then was accepted, up to so much. */
  accepted: bigint
}
interface Back {
  readonly id: string
  readonly parts: ReadonlyArray<RefundPart>
  readonly on: string
  status: "noted" | "not_found" | "failed"
}

const asked = 1000n
const floor = 10n
const sumOf = (all: Iterable<bigint>) => [...all].reduce((sum, one) => sum + one, 0n)
const most = (one: bigint, other: bigint) => (one > other ? one : other)
const least = (one: bigint, other: bigint) => (one < other ? one : other)

const shown = ({ hash, on }: Piece, sums: Readonly<Record<string, bigint>>) =>
  [hash, on, ...Object.entries(sums).map(([name, sum]) => `${name} ${sum}`)].join(" ")

class Specification {
  readonly pieces: Array<Piece> = []
  readonly back: Array<Back> = []
  status: "open" | "confirmed" | "ended" = "open"
  isOver = false
  /** The transaction that it was confirmed for, and when. */
  completedBy: string | undefined
  confirmedAt = 0

  of = (role: Role) => this.pieces.filter((one) => one.role === role)
  went = ({ hash, on }: Piece, isMeant: (part: RefundPart) => boolean = () => true) => {
    const standing = this.back.filter((one) => one.status !== "failed" && one.on === on)
    return sumOf(
      standing.flatMap(({ parts }) =>
        parts.filter((one) => one.txHash === hash && isMeant(one)).map(({ amount }) => amount)
      )
    )
  }
  /** What is left to decide by: what a confirmed payment counts stays paid when it goes back. */
  left = (piece: Piece) => piece.amount - this.went(piece, ({ ofConfirmed }) => !ofConfirmed)

  /** What of it is not needed. */
  surplus = (piece: Piece): bigint => {
    const all = this.of("own")
    const [place, completing] = [all.indexOf(piece), all.findIndex(({ hash }) => hash === this.completedBy)]
    if (completing === -1) return piece.at > this.confirmedAt ? this.left(piece) : 0n
    // The last ones are beyond it, each at most whole.
    const reached = sumOf(all.slice(0, place + 1).map(this.left))
    return most(0n, least(reached - asked, this.left(piece)))
  }
  undecided = (piece: Piece): bigint => {
    if (piece.role === "small") return 0n
    if (piece.role === "own") return this.status === "confirmed" ? this.surplus(piece) : 0n
    return this.left(piece)
  }
  open = (piece: Piece): bigint => {
    const amount = this.undecided(piece)
    // An acceptance stays once some of its money went back.
    const isKept = piece.accepted > 0n && this.went(piece, ({ ofConfirmed }) => ofConfirmed) > 0n
    return isKept || amount <= piece.accepted ? 0n : amount
  }
  small = (piece: Piece) => (piece.role === "small" ? piece.amount : 0n)
  counts = (piece: Piece) => piece.amount - this.small(piece) - this.open(piece) - this.went(piece)

  come(hash: string, on: string, amounts: ReadonlyArray<bigint>, at: number) {
    const amount = sumOf(amounts)
    const isOwn = on === "base ETH" && !this.isOver
    const others = [...this.of("own"), ...this.of("apart")]
    // It completes what is missing without the refunds, which may fail, or with them.
    const isCompleting = [sumOf(others.map((one) => one.amount)), sumOf(others.map(this.left))].some(
      (had) => had < asked && had + amount >= asked
    )
    const isSmall = on === "base ETH" && amount < floor && !(isOwn && isCompleting)
    const role = isSmall ? "small" : isOwn && this.status !== "ended" ? "own" : "stray"
    this.pieces.push({ hash, on, amount, at, role, accepted: 0n })
  }
  /** An open payment is confirmed by the first of its own money that reaches the amount; what grew is open again. */
  settle(at: number) {
    let reached = 0n
    for (const one of this.status === "open" ? this.of("own") : []) {
      reached += this.left(one)
      if (reached >= asked && this.status === "open") this.confirm(one.hash, at)
    }
    for (const one of this.pieces) if (this.open(one) > 0n) one.accepted = 0n
  }
  confirm(hash: string | undefined, at: number) {
    this.status = "confirmed"
    this.completedBy = hash
    this.confirmedAt = at
  }
  end() {
    if (!this.isOver && this.status === "open") {
      this.status = "ended"
      for (const one of this.of("own")) one.role = "apart"
    }
    this.isOver = true
  }
  accept(piece: Piece | undefined, at: number) {
    const meant = piece === undefined ? this.pieces.filter((one) => this.open(one) > 0n) : [piece]
    for (const one of meant) one.accepted = this.open(one)
    const isOwn = (one: Piece) => one.role === "own" || (one.role === "apart" && one.accepted > 0n)
    const own = this.pieces.filter((one) => isOwn(one) && this.left(one) > 0n)
    const crossing = own.find((_, place) => sumOf(own.slice(0, place + 1).map(this.left)) >= asked)
    if (this.status !== "confirmed") this.confirm((piece ?? crossing ?? own[0] ?? meant[0])?.hash, at)
    for (const one of meant) if (one.role === "apart") [one.role, one.accepted] = ["own", 0n]
    for (const one of piece === undefined ? this.pieces : meant) one.accepted = most(one.accepted, this.open(one))
  }
}

const statuses = { open: /pending|detecting/, confirmed: /confirmed/, ended: /failed|expired/ }
const places = { own: [network, "ETH"], token: [network, "USDC"], chain: [elsewhere, "ETH"] } as const
const step = fc.record({
  act: fc.constantFrom("pay", "pay", "pay", "accept", "refund", "refund", "drop", "lose", "end"),
  to: fc.constantFrom<keyof typeof places>("own", "own", "own", "token", "chain"),
  amounts: fc.oneof(
    { weight: 5, arbitrary: fc.tuple(fc.constantFrom(5n, 400n, 600n, 995n, 1000n, 1200n)) },
    { weight: 1, arbitrary: fc.tuple(fc.bigInt(10n, 900n), fc.bigInt(10n, 900n)) }
  ),
  /** Which of the open exceptions, or the payment; which of the refunds. */
  pick: fc.nat(20),
  /** Percent of what is left. */
  share: fc.constantFrom(10n, 35n, 60n, 100n, 110n)
})
type Step = typeof step extends fc.Arbitrary<infer One> ? One : never

let [payments, head] = [0, 100]

/** One payment after another: each has its own address, and the chains go on. */
const play = (steps: ReadonlyArray<Step>) =>
  Effect.gen(function* () {
    const address = getAddress(pad(numberToHex(++payments), { size: 20 }))
    const [createdAt, expiresAt] = [head * 1000, head * 1000 + 3_600_000]
    const over = (head * 1000 + 3_660_000) / 1000 + confirmations
    const { id } = yield* payAgain(payments, { id: newPaymentId(0), address, createdAt, expiresAt, floor })
    const reader = yield* Reader
    const spec = new Specification()
    const now = () => head * 1000
    const seconds = (by: number) =>
      Effect.suspend(() => {
        head += by
        return TestClock.setTime(now())
      })
    const exceptions = Effect.map(Exceptions.ofPayment(reader, id), (all) =>
      all.filter(({ status }) => status === "open")
    )
    const pieceOf = (one: { txHash: string | undefined }) => spec.pieces.find(({ hash }) => hash === one.txHash)
    const refund = Effect.fnUntraced(function* (of: string, on: string, left: bigint, request: RefundRequest) {
      const done = yield* Effect.either(refunded(of, request))
      expect(Either.isRight(done)).toBe(left > 0n && (request.amount ?? 0n) <= left)
      if (Either.isLeft(done) || done.right === undefined) return
      const { amount, id: ref, parts } = done.right.refund
      expect(sumOf(parts.map((one) => one.amount))).toBe(amount)
      spec.back.push({ id: ref, parts, on, status: "noted" })
    })
    const act = Effect.fnUntraced(function* ({ act, amounts, pick, share, to }: Step) {
      const [on, currency] = places[to]
      const place = `${on.chain} ${currency}`
      const open = yield* exceptions
      const chosen = open[pick % (open.length + 1)]
      const part = (of: bigint) => most(1n, (of * share) / 100n)
      const sent = spec.back.filter(({ status }) => status !== "failed")
      const one = sent[pick % Math.max(1, sent.length)]
      yield* seconds(confirmations)
      if (act === "pay") {
        const number = head - confirmations + 1
        const same = { address: address.toLowerCase(), currency, txHash: `0x${number}` }
        const moved = (amount: bigint, n: number) =>
          transfer(number, amount, { ...same, position: `log:${n}`, place: n })
        yield* tick({ head, on, transfers: amounts.map(moved) })
        spec.come(same.txHash, place, amounts, now())
      } else if (act === "accept") {
        const done = yield* Effect.either(accept(chosen?.id ?? id, owner, {}))
        if (Either.isRight(done)) spec.accept(chosen && pieceOf(chosen), now())
      } else if (act === "refund" && chosen !== undefined) {
        const left = sumOf([pieceOf(chosen)].flatMap((piece) => (piece ? [spec.open(piece)] : [])))
        yield* refund(chosen.id, `${chosen.chain} ${chosen.currency}`, left, { amount: part(left) })
      } else if (act === "refund") {
        const left = sumOf(spec.pieces.filter(({ on }) => on === place).map((one) => spec.open(one) + spec.counts(one)))
        yield* refund(id, place, left, { chain: on.chain, currency, amount: part(left) })
      } else if (act === "end") {
        if (head < over) yield* seconds(over - head)
        for (const on of [elsewhere, network]) yield* tick({ head, on })
        spec.end()
      } else if (one !== undefined) {
        one.status = act === "drop" ? "failed" : "not_found"
        const changing = Effect.flatMap(Refunds.byId(reader, one.id), (refund = expect.unreachable()) =>
          changed(refund, { status: one.status })
        )
        yield* inTransaction(Effect.provide(changing, yield* Effect.context<Settlement>()))
      }
      spec.settle(now())
    })
    const check = Effect.gen(function* () {
      const payment = (yield* Repo.byId(reader, id)) ?? expect.unreachable()
      const { rows } = yield* BooksRepo.page(reader, [], { ...owner, payment: id }, undefined, 1000)
      const open = yield* exceptions
      for (const piece of spec.pieces) {
        const its = rows.filter(({ kind, txHash }) => kind === "receipt" && txHash === piece.hash)
        const is = {
          came: sumOf(its.map(({ amount }) => BigInt(amount))),
          open: sumOf(open.flatMap(({ amount, txHash }) => (txHash === piece.hash ? [amount] : []))),
          small: sumOf(its.flatMap(({ amount, what }) => (what === "too_small" ? [BigInt(amount)] : [])))
        }
        const expected = { came: piece.amount, open: spec.open(piece), small: spec.small(piece) }
        const wrong = `${shown(piece, is)}, not ${shown(piece, expected)}`
        if (shown(piece, is) !== shown(piece, expected)) expect.unreachable(wrong)
        for (const sum of [...Object.values(is), spec.counts(piece)]) expect(sum).toBeGreaterThanOrEqual(0n)
        expect(its.filter(({ what }) => what === "before")).toEqual([])
      }
      // Refunds that the chain does not show are in no sum: what they hold is neither kept nor income.
      if (spec.back.every(({ status }) => status !== "not_found")) {
        const income = Object.fromEntries(
          addUp(rows).sums.map(({ chain, currency, income }) => [`${chain} ${currency}`, income])
        )
        const counts = Arr.groupBy(spec.pieces, ({ on }) => on)
        expect(income).toEqual(Record.map(counts, (all) => sumOf(all.map(spec.counts))))
      }
      const own = spec.pieces.filter(({ on, role }) => on === "base ETH" && role !== "small")
      const sent = spec.back.filter(({ on, status }) => on === "base ETH" && status === "noted")
      const received = sumOf(own.map(({ amount }) => amount))
      const refunded = sumOf(sent.flatMap(({ parts }) => parts.map(({ amount }) => amount)))
      expect(payment).toMatchObject({ received, refunded })
      expect(received - refunded).toBeGreaterThanOrEqual(0n)
      expect(payment.status).toMatch(statuses[spec.status])
    })
    for (const one of steps) {
      yield* act(one)
      yield* check
    }
  })

const of = (act: Step["act"], over: Partial<Step> = {}): Step => ({
  ...{ act, to: "own", amounts: [400n], pick: 0, share: 10n },
  ...over
})
/** Rare ones. */
const examples: ReadonlyArray<ReadonlyArray<Step>> = [
  // Accepted money goes back, and then an earlier refund of its exception turns out not to have been made.
  [of("pay", { to: "chain" }), of("refund"), of("accept"), of("refund", { to: "chain" }), of("drop")],
  // Other money was accepted, and a refund of the payment's own fails then.
  [of("pay"), of("pay", { to: "chain" }), of("end"), of("accept"), of("refund"), of("drop")],
  // The same where the refund was made before there was an exception.
  [of("pay"), of("refund"), of("pay", { to: "chain" }), of("end"), of("accept"), of("drop")],
  // What a small one completed is incomplete without what went back: the small one stays the payment's own, also beside other
  // money that was accepted.
  [of("pay", { amounts: [995n] }), of("refund"), of("pay", { amounts: [5n] }), of("end")],
  [
    ...[of("pay", { to: "chain" }), of("accept"), of("pay", { amounts: [995n] }), of("pay", { amounts: [5n] })],
    of("refund")
  ],
  // Beside a small one that completed the amount before some went back, another one completes it after that.
  [
    ...[of("pay", { amounts: [100n] }), of("refund", { share: 1n }), of("pay", { amounts: [895n] })],
    ...[of("pay", { amounts: [5n] }), of("pay", { amounts: [1n] })]
  ],
  // Another small one than that which completed it is in no sum.
  [of("pay", { amounts: [995n] }), of("pay", { amounts: [5n] }), of("pay", { amounts: [5n] })],
  // More than is left, and less than came.
  [of("pay", { amounts: [1200n] }), of("refund", { share: 100n }), of("refund", { share: 110n })]
]

scopedTest(besideNode(twoChains))(
  "for any receipts and any order of decisions each unit that came is one thing, and none goes back twice",
  function* () {
    yield* startWith()
    yield* startScans(head, elsewhere)
    const run = Runtime.runPromise(yield* Effect.runtime<Effect.Effect.Context<ReturnType<typeof play>>>())
    const property = fc.asyncProperty(fc.array(step, { minLength: 9, maxLength: 16, size: "max" }), (steps) =>
      run(play(steps))
    )
    // What fails is made small for so long.
    const limits = { numRuns: 50, interruptAfterTimeLimit: 40_000 }
    yield* Effect.promise(() => fc.assert(property, { ...limits, examples: examples.map((steps) => [[...steps]]) }))
  }
)
