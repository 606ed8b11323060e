import { type ChainName, chainTraits } from "../../src/Domain/Chain.ts"
import { accountAt, type Block, isOnBranch } from "./Block.ts"
import { type Books, sum } from "./Books.ts"
import { contractOf } from "./plans.ts"
import type { ExceptionRow, PaymentRow, ReceiptRow } from "./rows.ts"
import { Violation } from "./watched.ts"

// What must hold once the daemon has had the time to read everything.

/** Every token that came to a payment's address has its receipt, on whatever chain, and coins where blocks are read. */
const checkComplete = (books: Books): void => {
  const counted = new Map<string, bigint>()
  const rows = books.receipts()
  const invented = new Set(books.strict.leftovers ? [] : books.notThere(rows))
  for (const row of rows) {
    if (invented.has(row)) continue
    const { address, amount, chain, currency } = row
    const key = [chain, address, currency].join(" ")
    counted.set(key, (counted.get(key) ?? 0n) + BigInt(amount))
  }
  for (const { address } of books.payments()) {
    for (const [name, { chain, plan }] of books.chains) {
      const currencies = [
        ...plan.tokens,
        ...plan.wrongTokens.map((wrong) => books.currencyOf(books.watched(name), contractOf(plan, wrong)))
      ]
      for (const currency of currencies) {
        if (currency === undefined) continue
        const held = books.total(name, address, currency, chain.head, books.startOf(name))
        const found = counted.get([name, address, currency].join(" ")) ?? 0n
        if (found !== held)
          throw new Violation(`${held} ${currency} came to ${address} on ${name}, and ${found} is counted`)
      }
    }
  }
}

/** When the daemon has read everything, and no provider or receiver has a fault. */
export const checkQuiet = (books: Books, everything: boolean): void => {
  for (const [
    chain,
    {
      chain: { head }
    }
  ] of books.chains) {
    const scanned = books.scanned(chain)
    if (scanned !== head)
      throw new Violation(`${chain} was read up to ${scanned?.number}, and its head is ${head.number}`)
  }
  for (const payment of books.payments()) {
    const { plan, chain } = books.watched(payment.chain)
    const deep = books
      .counted(payment, chain.head)
      .surely.filter(({ block }) => chain.head.number - block.number + 1 >= plan.confirmations)
    const isOpen = payment.status === "pending" || payment.status === "detecting"
    // What came and went between two looks at the balance is reported by the last look, at the deadline.
    const isEmptied =
      accountAt(chain.head, payment.address).nonce > 0 &&
      deep.some(({ credit }) => books.isReportedByBalance(payment, credit))
    const { areTimesWrong, isLiedAbout, withheld } = books.watched(payment.chain)
    // While two providers disagree about a block's time its receipts are asked about less and less often.
    const isAwaited = payment.status === "detecting" && areTimesWrong()
    const isKnown =
      everything || !(isAwaited || isLiedAbout(payment.address) || deep.some(({ credit }) => withheld(credit.txHash)))
    if (isOpen && isKnown && !isEmptied && !books.isUnattributed(payment) && sum(deep) >= BigInt(payment.amount)) {
      throw new Violation(
        `payment ${books.number(payment)} is ${payment.status}, and ${sum(deep)} of ${payment.amount} came`
      )
    }
  }
  if (everything) checkComplete(books)
}

/**
 * Whether what was invented on a chain has been in the database for long enough that others were asked about it: something
 * of every payment that was lied about. `begun`: when the daemon has started, Unix milliseconds.
 */
export const isInventionKnown = (
  books: Books,
  name: ChainName,
  { begun, now }: { readonly begun: number; readonly now: number }
): boolean => {
  const { chain, isLiedAbout, plan } = books.watched(name)
  const untrue = books.notThere(books.receipts()).filter((row) => row.chain === name && isLiedAbout(row.address))
  const isDeep = (row: ReceiptRow) => chain.head.number - row.block_number > plan.confirmations + 3
  // Where no payment of its own is open, a chain is looked at every four minutes.
  const isOpen = (at: string) =>
    books.payments().some((one) => one.address === at && one.chain === name && /pending|detecting/.test(one.status))
  const asked = (at: string) => (isOpen(at) ? 20_000 : 260_000)
  const isKnown = (row: ReceiptRow) => isDeep(row) && Math.max(row.seen_at, begun) <= now - asked(row.address)
  const known = new Set(untrue.filter(isKnown).map(({ address }) => address))
  const liedAbout = books.payments().filter(({ address }) => isLiedAbout(address))
  return untrue.length > 0 && untrue.every(isKnown) && liedAbout.every(({ address }) => known.has(address))
}

/** The money that an exception reports: what is open, was accepted, or was sent back, unless a reorg has taken it since. */
const reportedBy = (books: Books, { amount, chain, kind, outcome, sent_back, tx_hash }: ExceptionRow): bigint => {
  if (kind === "reorged" || outcome === "gone") return 0n
  const blocks = books.watched(chain).chain
  const isThere = (block: Block) => isOnBranch(blocks.head, block)
  if (outcome !== null && tx_hash !== null && !blocks.inclusions.get(tx_hash)?.some(isThere)) return 0n
  return (outcome === "refunded" ? 0n : BigInt(amount)) + BigInt(sent_back)
}

/** Tokens at an address whose payment was lost are reported, of many transfers the first. */
const checkLost = (books: Books, address: string): void => {
  for (const [name, { chain, plan }] of books.chains) {
    for (const currency of plan.tokens) {
      const held = books.total(name, address, currency, chain.head, books.startOf(name))
      const reported = books
        .exceptions()
        .filter((one) => one.kind === "unknown_payment" && one.address === address && one.chain === name)
        .reduce((total, one) => total + (one.currency === currency ? reportedBy(books, one) : 0n), 0n)
      const isFlooded = books.receipts().filter((one) => one.address === address && one.chain === name).length > 100
      if (reported > held || (reported < held && !(isFlooded && reported > 0n))) {
        throw new Violation(
          `${held} ${currency} on ${name} is at ${address}, a lost payment's, and ${reported} is reported`
        )
      }
    }
  }
}

/** Every token at a payment's address is what it was paid with, or an exception reports it, but for small transfers of its own. */
export const checkReported = (books: Books): void => {
  const reported = new Map<string, bigint>()
  for (const one of books.exceptions()) {
    const key = [one.chain, one.address, one.currency].join(" ")
    reported.set(key, (reported.get(key) ?? 0n) + reportedBy(books, one))
  }
  // What counted and goes back is no exception.
  for (const { address, amount, chain, currency, exception_id, of_confirmed } of books.refundParts()) {
    const key = [chain, address, currency].join(" ")
    if (exception_id === null && of_confirmed === 0) reported.set(key, (reported.get(key) ?? 0n) + BigInt(amount))
  }
  for (const payment of books.payments()) {
    const { address, amount, amount_received, chain: own, currency: asked, id, status } = payment
    // An open payment waits for a provider that can report it, and shows what came.
    const isOpen = status === "pending" || status === "detecting"
    const isAccepted = books.accepted.has(id)
    const received = BigInt(isOpen || isAccepted ? (amount_received ?? 0) : 0)
    // What makes up for the rest of a payment that was accepted for less is its own.
    const shown = status === "confirmed" && received < BigInt(amount) ? BigInt(amount) : received
    const small = books.smallTo(payment)
    for (const [name, { chain, plan }] of books.chains) {
      for (const currency of plan.tokens) {
        const held = books.total(name, address, currency, chain.head, books.startOf(name))
        const isAsked = name === own && currency === asked
        const known = (reported.get([name, address, currency].join(" ")) ?? 0n) + (isAsked ? shown : 0n)
        // A payment that was accepted shows what it was accepted for beside the exceptions of that.
        const least = isAsked ? held - small : held
        const isRight = known >= least && (known <= held || (isAccepted && isAsked))
        if (!isRight) throw new Violation(`${held} ${currency} came to ${address} on ${name}, and ${known} is reported`)
      }
      // Coin for a token, where blocks show it: gas to collect with is never that much.
      if (asked === plan.coin || !chainTraits[name].readsFullBlocks) continue
      const large = books
        .creditsTo(address, chain.head, books.startOf(name))
        .filter(({ credit }) => credit.contract === undefined && credit.position.startsWith("tx:"))
        .filter(({ credit }) => credit.amount > chainTraits[name].mostGas)
      const came = sum(large)
      const known = reported.get([name, address, plan.coin].join(" ")) ?? 0n
      if (known < came)
        throw new Violation(`${came} ${plan.coin} came to ${address} on ${name}, and ${known} is reported`)
    }
  }
}

/**
 * While the clock was right, no payment got more time than one provider's head may give it by itself. `except`: until a
 * daemon that starts has looked at a chain, the stored head counts, which one provider alone may have shown.
 */
export const checkTimes = (books: Books, except: ReadonlySet<string>): void => {
  for (const payment of books.payments()) {
    if (except.has(payment.id)) continue
    if (payment.extended > 6_000 && !books.watched(payment.chain).isLeftToOne())
      throw new Violation(`payment ${books.number(payment)} got ${payment.extended} ms more, and the clock was right`)
  }
}

/** Milliseconds between two sweeps that compare nonces. */
const nonceSweep = 6 * 3_600_000

/** The coins that came by `until`, Unix milliseconds, to a payment that asks for them and has ended are reported. */
export const checkLateCoins = (books: Books, { id }: PaymentRow, until: number, now: number): void => {
  const payment = books.payments().find((one) => one.id === id)
  if (payment === undefined || payment.status === "pending" || payment.status === "detecting") return
  const { address, amount, chain, currency } = payment
  const { chain: blocks, plan } = books.watched(chain)
  if (currency !== plan.coin) return
  // What was collected shows in the nonce alone, which a sweep compares every six hours.
  if (accountAt(blocks.head, address).nonce > 0 && now - until < nonceSweep) return
  const came = books
    .creditsTo(address, blocks.head, books.beginsAbove(payment))
    .filter(({ block, credit }) => credit.contract === undefined && block.time * 1000 <= until)
  const reported = books
    .exceptions()
    .filter((one) => one.address === address && one.chain === chain && one.currency === currency)
  const known = reported.reduce(
    (all, one) => all + reportedBy(books, one),
    payment.status === "confirmed" ? BigInt(amount) : 0n
  )
  if (known + books.smallTo(payment) < sum(came))
    throw new Violation(`${sum(came)} ${currency} came to ${address} on ${chain}, and ${known} is reported hours later`)
}

/** When every deadline is long over. `lost`: payments that are no longer in the database. */
export const checkEnd = (books: Books, lost: ReadonlyArray<PaymentRow> = []): void => {
  // What one provider invents holds a payment open on its own chain, and on no other one.
  const held = books.strict.leftovers ? [] : books.notThere(books.receipts())
  for (const payment of books.payments()) {
    const isOpen = payment.status === "pending" || payment.status === "detecting"
    if (
      isOpen &&
      !books.isUnattributed(payment) &&
      // Where only one provider can report what moved inside a contract, the payment waits, and an exception says so.
      !books.isReportedAsUnattributed(payment) &&
      !held.some(({ address, chain }) => address === payment.address && chain === payment.chain)
    ) {
      throw new Violation(`payment ${books.number(payment)} is still ${payment.status} long after its time`)
    }
    const { chain } = books.watched(payment.chain)
    const { atMost } = books.counted(payment, chain.head)
    // What a payment was accepted for is there in the end: one transaction of it, at least.
    const isThere = (block: Block) => isOnBranch(chain.head, block)
    const blocks = books.accepted.has(payment.id) ? chain.inclusions.get(payment.tx_hash ?? "") : undefined
    if (books.accepted.has(payment.id) && (blocks === undefined || blocks.some(isThere))) continue
    if (payment.status === "confirmed" && sum(atMost) < BigInt(payment.amount)) {
      throw new Violation(`payment ${books.number(payment)} is confirmed, and ${sum(atMost)} is there in the end`)
    }
  }
  for (const { address } of lost) checkLost(books, address)
}
