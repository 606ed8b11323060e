import type { ChainName } from "../../src/Domain/Chain.ts"
import { type Block, type Credit, isOnBranch } from "./Block.ts"
import { Books, type Placed, sum } from "./Books.ts"
import { settleGrace } from "./plans.ts"
import type { ExceptionRow, PaymentRow } from "./rows.ts"
import { Violation } from "./watched.ts"

const legal: Readonly<Record<string, ReadonlyArray<string>>> = {
  pending: ["detecting", "confirmed", "expired", "failed"],
  detecting: ["pending", "confirmed", "expired", "failed"],
  confirmed: ["failed"],
  expired: [],
  failed: []
}

/** Compares the database with the chains after each commit. */
export class Ledger extends Books {
  readonly #seen = new Map<string, PaymentRow>()
  /** Exceptions that are as they should be. */
  readonly #checked = new Set<string>()
  /** By chain, the block up to which it was verified. */
  readonly #verified = new Map<ChainName, number>()
  /** By payment, the block up to which it was searched for. */
  readonly #searched = new Map<string, number>()
  /** What is decided of each exception: its outcome, and the base units that were sent back. */
  readonly #decided = new Map<string, Pick<ExceptionRow, "outcome" | "sent_back">>()
  /** The refunds that were checked. */
  readonly #refunded = new Set<string>()
  /** The heads that were read at the commit before. */
  readonly #before = new Map<ChainName, Block | undefined>()
  /** The payment that a person is confirming now. */
  accepting: string | null = null

  /** What was seen in the file of before counts no more. */
  override reopen(): void {
    super.reopen()
    this.#before.clear()
    this.#decided.clear()
    for (const one of this.exceptions()) this.#decided.set(one.id, one)
    this.#seen.clear()
    this.#checked.clear()
    this.#verified.clear()
    this.#searched.clear()
    for (const payment of this.payments()) {
      this.#seen.set(payment.id, payment)
      if (payment.status === "confirmed" || payment.failure_reason === "reorged") continue
      this.accepted.delete(payment.id)
      this.decided.delete(payment.id)
    }
  }

  /** After each commit. */
  check(): void {
    this.#checkReceipts()
    this.#checkExceptions()
    this.#checkDecisions()
    this.#checkProgress()
    for (const payment of this.payments()) {
      const before = this.#seen.get(payment.id)
      if (before?.status !== payment.status) this.#checkTransition(before, payment)
      else if (!["pending", "detecting"].includes(payment.status)) this.#checkFrozen(before, payment)
      this.#seen.set(payment.id, payment)
    }
    for (const chain of this.chains.keys()) this.#before.set(chain, this.scanned(chain))
  }

  /** No block is verified that a second provider has not read, and no payment is searched for above what is settled. */
  #checkProgress(): void {
    const heads = new Map<ChainName, number>()
    // Blocks need no second look before anyone has an address.
    const isWatching = this.payments().length > 0
    for (const { chain, head_number, verified_number } of this.scans()) {
      heads.set(chain, head_number)
      const before = this.#verified.get(chain) ?? verified_number
      this.#verified.set(chain, verified_number)
      for (let number = before + 1; isWatching && number <= verified_number; number++) {
        const readers = this.watched(chain).readers(number)
        if (readers < this.watched(chain).quorum)
          throw new Violation(`block ${number} of ${chain} is verified, and ${readers} have read it`)
      }
    }
    for (const { chain, number, payment_id } of this.searches()) {
      const settled = (heads.get(chain) ?? 0) - this.watched(chain).plan.confirmations + 1
      if (number > settled && this.#searched.get(payment_id) !== number) {
        throw new Violation(
          `${payment_id} was searched for up to block ${number} of ${chain}, and ${settled} is settled`
        )
      }
      this.#searched.set(payment_id, number)
    }
  }

  #checkFrozen(before: PaymentRow, after: PaymentRow): void {
    if (before.tx_hash !== after.tx_hash || before.failure_reason !== after.failure_reason) {
      throw new Violation(`${after.id} is ${after.status} and changed: ${JSON.stringify([before, after])}`)
    }
  }

  /** Each receipt is on the branch that was read, is what the block says, and all are no more than the chain holds. */
  #checkReceipts(): void {
    const scanned = new Map(
      this.scans().map(({ chain, head_hash }) => [chain, this.watched(chain).chain.byHash.get(head_hash)])
    )
    for (const [chain, head] of scanned) {
      if (head === undefined && !this.watched(chain).isGarbled()) {
        throw new Violation(`the scanned head of ${chain} is no block of the chain`)
      }
    }
    const totals = new Map<string, bigint>()
    const branches = new Map<Block, boolean>()
    const isOn = (head: Block, block: Block): boolean => {
      const found = branches.get(block) ?? isOnBranch(head, block)
      branches.set(block, found)
      return found
    }
    for (const row of this.receipts()) {
      const head = scanned.get(row.chain)
      if (head === undefined) continue
      const watched = this.watched(row.chain)
      // What one provider says may be noted. What follows from it is looked at below.
      if (watched.isLiedAbout(row.address)) continue
      const block = watched.chain.byHash.get(row.block_hash)
      if (block === undefined && watched.isGarbled()) continue
      const what = () =>
        `${row.amount} ${row.currency} at ${row.position} of ${block?.number ?? row.block_hash} on ${row.chain}`
      if (block === undefined || !isOn(head, block)) {
        throw new Violation(
          `${what()} is canonical, and the chain that was read up to ${head.number} does not have its block`
        )
      }
      // Of what moves inside contracts the block tells no more than the sum: that is looked at below.
      const amount = BigInt(row.amount)
      const isThere =
        /^(unattributed|call:)/.test(row.position) ||
        block.credits.some(
          (credit) =>
            credit.txHash === row.tx_hash &&
            credit.amount === amount &&
            credit.address === row.address &&
            this.currencyOf(watched, credit.contract) === row.currency
        )
      if (!isThere) throw new Violation(`${what()} is a receipt, and the block has no such thing`)
      const key = [row.chain, row.address, row.currency].join(" ")
      totals.set(key, (totals.get(key) ?? 0n) + BigInt(row.amount))
    }
    for (const [key, total] of totals) {
      const [chain, address = "", currency] = key.split(" ") as [ChainName, string, string]
      const head = scanned.get(chain)
      const held = head === undefined ? total : this.total(chain, address, currency, head)
      if (total > held)
        throw new Violation(`${total} ${currency} counted for ${address} on ${chain}, which has ${held}`)
    }
  }

  /** Money that may be sent back has come. */
  #checkExceptions(): void {
    for (const { address, amount, chain, currency, id, kind, outcome, tx_hash } of this.exceptions()) {
      const key = `${id} ${amount}`
      if (outcome !== null || tx_hash === null || kind === "reorged" || this.#checked.has(key)) continue
      // One provider alone reports it, and the exception says so.
      if (kind === "unattributed") continue
      // What is too much may have come with the transactions before the one that it is noted with.
      const came =
        kind === "overpaid" ? this.came(chain, address, currency) : this.broughtBy(tx_hash, chain, address, currency)
      if (came < BigInt(amount)) {
        throw new Violation(`${kind}: ${amount} ${currency} on ${chain} with ${tx_hash}, which brought ${came}`)
      }
      this.#checked.add(key)
    }
  }

  /**
   * A person decides on money that has its confirmations on the branch that was read by then. The chain may have another one
   * already, which no provider has shown: that cannot be known.
   */
  #checkDecisions(): void {
    for (const one of this.exceptions()) {
      const before = this.#decided.get(one.id)
      this.#decided.set(one.id, one)
      const sent = BigInt(one.sent_back) - BigInt(before?.sent_back ?? 0)
      const isAccepted = one.outcome === "accepted" && before?.outcome !== "accepted"
      if (one.kind === "reorged" || !(isAccepted || sent > 0n)) continue
      const decided = isAccepted ? BigInt(one.amount) : sent
      // What is too much, or has no transaction, may have come with any.
      const isIts = ({ txHash }: Credit) => one.kind === "overpaid" || one.tx_hash === null || one.tx_hash === txHash
      const deep = this.#deepTo(one.chain, one.address, (credit, name) => name === one.currency && isIts(credit))
      if (deep >= decided) continue
      const what = `${decided} ${one.currency} on ${one.chain} (${one.kind} ${one.tx_hash})`
      throw new Violation(`${what} is ${isAccepted ? "accepted" : "refunded"}, and ${deep} has the confirmations`)
    }
    // What counted for its payment goes back once, with what else goes back of its transaction.
    const parts = this.refundParts()
    for (const { address, chain, currency, exception_id, refund_id, tx_hash } of parts) {
      if (this.#refunded.has(refund_id) || exception_id !== null || tx_hash === null) continue
      const all = parts.filter((one) => one.address === address && one.chain === chain && one.currency === currency)
      const back = all
        .filter((one) => one.tx_hash === tx_hash)
        .reduce((total, { amount }) => total + BigInt(amount), 0n)
      const deep = this.#deepTo(chain, address, ({ txHash }, name) => name === currency && txHash === tx_hash)
      if (back > deep) throw new Violation(`${back} ${currency} of ${tx_hash} goes back, and ${deep} came`)
    }
    for (const { refund_id } of parts) this.#refunded.add(refund_id)
  }

  /** What came to an address with its confirmations, on the branch that is read now, or that was at the commit before. */
  #deepTo(name: ChainName, address: string, isIts: (credit: Credit, currency: string | undefined) => boolean): bigint {
    const watched = this.watched(name)
    const deepOn = (head: Block): bigint =>
      sum(
        this.creditsTo(address, head, -1).filter(
          ({ block, credit }) =>
            head.number - block.number + 1 >= watched.plan.confirmations &&
            isIts(credit, this.currencyOf(watched, credit.contract))
        )
      )
    // One commit may take both a decision and what a tick has read.
    const now = deepOn(this.scanned(name) ?? watched.chain.head)
    const head = this.#before.get(name)
    const before = head === undefined ? 0n : deepOn(head)
    return before > now ? before : now
  }

  /** A person confirms a payment for money of any kind, and for less than it asks for, but for no money that is not deep. */
  #checkAccepted(
    { address, amount_received, chain, currency, tx_hash }: PaymentRow,
    fail: (why: string) => void
  ): void {
    const isPayer = (name: ChainName) => this.#deepTo(name, address, ({ txHash }) => txHash === tx_hash) > 0n
    if (![...this.chains.keys()].some(isPayer)) fail(`for ${tx_hash}, which does not have its confirmations`)
    const deep = this.#deepTo(chain, address, (_, name) => name === currency)
    if (deep < BigInt(amount_received ?? 0)) fail(`for ${amount_received}, and ${deep} has the confirmations`)
  }

  #checkTransition(before: PaymentRow | undefined, after: PaymentRow): void {
    const from = before?.status ?? "pending"
    const name = `payment ${this.number(after)} (${after.amount} ${after.currency} on ${after.chain})`
    const isAccepted = after.status === "confirmed" && this.accepting === after.id
    if (from !== after.status && !legal[from]?.includes(after.status) && !isAccepted) {
      throw new Violation(`${name} went from ${from} to ${after.status}`)
    }
    const watched = this.watched(after.chain)
    const { chain, plan } = watched
    // Where a provider showed the daemon blocks of no branch, the chain itself decides what the payment may end with.
    const isEnd = ["confirmed", "expired", "failed"].includes(after.status)
    const head = this.scanned(after.chain) ?? (isEnd ? chain.head : undefined)
    if (head === undefined) return
    const { atMost, surely } = this.counted(after, head)
    const deepOn = (tip: Block) =>
      this.counted(after, tip).atMost.filter(
        ({ block }) =>
          tip.number - block.number + 1 >= plan.confirmations &&
          (this.requires === undefined || block.number <= chain[this.requires])
      )
    const isLiedAbout = watched.isLiedAbout(after.address)
    const fail = (why: string) => {
      throw new Violation(`${name} is ${[after.status, after.failure_reason ?? []].flat().join(" ")}, ${why}`)
    }
    const needed = BigInt(after.amount)
    if (after.status === "confirmed") {
      // An honest provider may have shown the money deep, and a reorg have come since: that cannot be known.
      const tips = this.scanned(after.chain) === undefined ? [head, ...watched.shown()] : [head]
      const [first = [], ...others] = tips.map(deepOn)
      this.#checkConfirmed(from, after, others.find((deep) => sum(deep) >= needed) ?? first, fail)
    }
    const isDoubtful = isLiedAbout || watched.isOneTimeWrong() || this.mayBeOnTime(after)
    if (after.status === "detecting" && atMost.length === 0 && !isDoubtful) {
      fail("and nothing came")
    }
    // What a reorg mines again is in the same commit, except coins that only the balance shows.
    const { withheld } = watched
    const reported = surely.filter(({ credit }) => !withheld(credit.txHash) && !this.isReportedByBalance(after, credit))
    const isBack = after.status === "pending" && from === "detecting" && reported.length > 0 && !isLiedAbout
    if (isBack) fail(`and ${sum(reported)} came`)
    const isDecided = after.status === "expired" || (after.status === "failed" && after.failure_reason !== "reorged")
    if (after.failure_reason === "cancelled") {
      if (from !== "pending" && from !== "detecting") fail(`and it was ${from}`)
      if (after.status === "failed" && atMost.length === 0 && !isLiedAbout && !this.mayBeOnTime(after)) {
        fail("and nothing came")
      }
      if (after.status === "expired" && this.#isKnown(after, surely)) fail("and two providers report what came")
    } else if (isDecided) this.#checkDecision(after, head, fail)
    // Coins inside a contract that came back count once two providers can report them.
    const isReported = (credit: Placed["credit"]) =>
      this.strict.inside || watched.tellsInside || !this.isReportedByBalance(after, credit)
    const back = surely.filter(({ credit }) => isReported(credit))
    // A provider that shows blocks of no branch corroborates nothing before it is final.
    const isUnknown = watched.isGarbled() && !this.#isKnown(after, back)
    // A payment that was accepted needs what it was accepted for.
    const isUnpaid = this.accepted.has(after.id) || sum(back) < needed || isUnknown
    if (after.failure_reason === "reorged" && !isUnpaid) fail(`and ${sum(back)} is there`)
  }

  /** `deep`: what counts for the payment, and has its confirmations. */
  #checkConfirmed(from: string, after: PaymentRow, deep: ReadonlyArray<Placed>, fail: (why: string) => void): void {
    const isOpen = from === "pending" || from === "detecting"
    if (this.accepting === after.id) this.decided.add(after.id)
    const isPayer = deep.some(({ block }) => block.transactions.some(({ hash }) => hash === after.tx_hash))
    if (this.accepting === after.id && !(isOpen && isPayer && sum(deep) >= BigInt(after.amount))) {
      this.accepted.add(after.id)
      this.#checkAccepted(after, fail)
      return
    }
    const { confirmations } = this.watched(after.chain).plan
    if (sum(deep) < BigInt(after.amount)) fail(`and only ${sum(deep)} came with ${confirmations} confirmations`)
    if (!isPayer) fail(`by ${after.tx_hash}, which is not among what paid`)
  }

  /** Whether two providers have a part of these credits. */
  #isKnown({ address, chain, currency }: PaymentRow, credits: ReadonlyArray<Placed>): boolean {
    const hashes = new Set<string | null>(credits.map(({ credit }) => credit.txHash))
    return this.receipts()
      .filter((row) => row.address === address && row.chain === chain && row.currency === currency)
      .some(({ corroborated, listed, tx_hash }) => corroborated === 1 && listed !== null && hashes.has(tx_hash))
  }

  /** An end without success is for a payment whose time is over by the chain's clock, and that was not paid. */
  #checkDecision(payment: PaymentRow, head: Block, fail: (why: string) => void): void {
    const watched = this.watched(payment.chain)
    const { atMost, surely } = this.counted(payment, head)
    let settled: Block | undefined = head
    for (let i = 1; i < watched.plan.confirmations; i++) settled = settled?.parent
    if ((settled?.time ?? 0) * 1000 <= payment.expires_at + settleGrace) fail("and its time is not over")
    const isDoubtful = watched.isLiedAbout(payment.address)
    const known = surely.filter(({ credit }) => this.strict.silence || !(isDoubtful || watched.withheld(credit.txHash)))
    const reason = payment.failure_reason
    // Of coins without a transaction it may be that only who has lied of them has the states: an exception reports them.
    const isReported = this.isReportedAsUnattributed(payment)
    const without = (isLeft: boolean) =>
      known.filter(({ credit }) => !(isLeft && isReported && this.isReportedByBalance(payment, credit)))
    const enough = without(isDoubtful)
    if (sum(enough) >= BigInt(payment.amount)) fail(`and ${sum(enough)} came in time`)
    // A part that no two providers have the states of does not count either: `docs/exceptions.md` says so.
    const certain = without(isDoubtful || !watched.keepsStates)
    if (reason !== "insufficient_amount" && certain.length > 0) fail(`and ${sum(certain)} came in time`)
    if (isDoubtful && !this.strict.endings) return
    const isVague = this.mayBeOnTime(payment)
    if (reason === "insufficient_amount" && atMost.length === 0 && !isVague) fail("and nothing came")
    const isCertain = !isVague && surely.length === atMost.length && certain.length === surely.length
    const lacking = sum(surely) - BigInt(payment.amount_received ?? 0)
    if (reason === "insufficient_amount" && isCertain && lacking !== 0n) {
      fail(`for ${payment.amount_received}, and ${sum(surely)} came in time`)
    }
    const others = this.othersTo(payment)
    const sentBack = this.exceptions().filter((one) => one.address === payment.address && one.sent_back !== "0")
    const here = others.filter(({ chain, credit, block: { number, time } }) => {
      if (sentBack.some((one) => one.chain === chain && (one.tx_hash ?? credit.txHash) === credit.txHash)) return false
      // What comes late, while the payment waits for other chains, is not searched for at a second provider.
      const isLate = time * 1000 > payment.expires_at + settleGrace
      if ((isLate || !this.strict.silence) && watched.withheld(credit.txHash)) return false
      // Coin that moved inside a contract shows in balances only, which are compared when the time is over.
      const isInBlock = credit.position.startsWith("tx:") || !isLate
      const isShown = credit.contract !== undefined || (payment.chain === "ethereum" && isInBlock)
      return chain === payment.chain && isShown && number <= (settled?.number ?? 0)
    })
    if (payment.status === "expired" && here.length > 0) fail(`and ${here.length} wrong tokens came`)
    if (reason === "wrong_token" && !others.some(({ chain }) => chain === payment.chain)) fail("and none came")
    if (reason === "wrong_chain" && !others.some(({ chain }) => chain !== payment.chain)) fail("and none came")
  }
}
