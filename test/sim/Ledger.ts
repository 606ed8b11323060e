import Database from "better-sqlite3"
import type { ChainName } from "../../src/Domain/Chain.ts"
import { type ChainPlan, contractOf, settleGrace } from "./plans.ts"
import {
  type DeliveryRow,
  type ExceptionRow,
  type PaymentRow,
  type ReceiptRow,
  type ScanRow,
  statements
} from "./rows.ts"
import { accountAt, type Block, type Credit, isOnBranch, type SimChain } from "./SimChain.ts"

/** The daemon and the chains do not agree. */
export class Violation extends Error {}

/** A chain as the ledger looks at it. */
export interface Watched {
  readonly plan: ChainPlan
  readonly chain: SimChain
  /** Headers with hashes that are nobody's were handed out. */
  readonly isGarbled: () => boolean
  /** Logs of these transactions were left out of some answer. */
  readonly withheld: (txHash: string) => boolean
  /** A provider has told something false about this address. */
  readonly isLiedAbout: (address: string) => boolean
  /** Two providers can tell of old blocks what moved inside contracts. */
  readonly tellsInside: boolean
  /** Blocks had times that are not theirs. */
  readonly areTimesWrong: () => boolean
}

/** What the daemon is held to besides all else; it does not keep all of it yet. */
export interface Strictness {
  /** Nothing ends unpaid because one provider has left out its money. */
  silence: boolean
  /** No payment fails for a part, or for a wrong token, that one provider has invented. */
  endings: boolean
  /** What was invented is gone in the end, and holds no payment open. */
  leftovers: boolean
  /** Nor does money hold one open that moved inside a contract, and of which no second provider can tell. */
  inside: boolean
}

export const usualStrictness: Readonly<Strictness> = { silence: false, endings: false, leftovers: false, inside: false }

interface Placed {
  readonly block: Block
  readonly credit: Credit
}

const sum = (credits: ReadonlyArray<Placed>): bigint => credits.reduce((total, { credit }) => total + credit.amount, 0n)

const legal: Readonly<Record<string, ReadonlyArray<string>>> = {
  pending: ["detecting", "confirmed", "expired", "failed"],
  detecting: ["pending", "confirmed", "expired", "failed"],
  confirmed: ["failed"],
  expired: [],
  failed: []
}

/**
 * What the daemon should know, by the chains themselves: which money counts is decided here a second time, in a few
 * lines of their own, and compared with the database after each commit.
 */
export class Ledger {
  readonly #path: string
  #db: Database.Database
  #statements: ReturnType<typeof statements>
  readonly #chains: ReadonlyMap<ChainName, Watched>
  readonly #requires: "safe" | "finalized" | undefined
  readonly #strict: Readonly<Strictness>
  readonly #seen = new Map<string, PaymentRow>()
  /** Exceptions that are as they should be. */
  readonly #checked = new Set<string>()

  /** `requires`: the tag that every payment waits for. */
  constructor(
    path: string,
    chains: ReadonlyMap<ChainName, Watched>,
    requires?: "safe" | "finalized",
    strict = usualStrictness
  ) {
    this.#path = path
    this.#db = new Database(path, { readonly: true })
    this.#statements = statements(this.#db)
    this.#chains = chains
    this.#requires = requires
    this.#strict = strict
  }

  /** Another file has taken the place of the database: what was seen in that one counts no more. */
  reopen(): void {
    this.#db.close()
    this.#db = new Database(this.#path, { readonly: true })
    this.#statements = statements(this.#db)
    this.#seen.clear()
    this.#checked.clear()
    for (const payment of this.payments()) this.#seen.set(payment.id, payment)
  }

  close(): void {
    this.#db.close()
  }

  payments(): ReadonlyArray<PaymentRow> {
    return this.#statements.payments.all()
  }

  /** Every event with each target that it is owed to, in their order. */
  deliveries(): ReadonlyArray<DeliveryRow> {
    return this.#statements.deliveries.all()
  }

  /** Whether an event is still to be delivered. */
  isOwed(): boolean {
    return this.deliveries().some(({ status }) => status !== "delivered")
  }

  /** Money that needs a person, oldest first. */
  exceptions(): ReadonlyArray<ExceptionRow> {
    return this.#statements.exceptions.all()
  }

  #watched(chain: ChainName): Watched {
    const watched = this.#chains.get(chain)
    if (watched === undefined) throw new Violation(`${chain} is not a chain of this simulation`)
    return watched
  }

  /** The block up to which the daemon says it has read the chain; undefined before the first, and where it was lied to. */
  #scanned(chain: ChainName): Block | undefined {
    const row = this.#scans().find((scan) => scan.chain === chain)
    return row && this.#watched(chain).chain.byHash.get(row.head_hash)
  }

  #scans(): ReadonlyArray<ScanRow> {
    return this.#statements.scans.all()
  }

  #receipts(): ReadonlyArray<ReceiptRow> {
    return this.#statements.receipts.all()
  }

  /** The names under which a contract's tokens, or the coin, are known; undefined of what never counts. */
  #currencyOf({ plan }: Watched, contract: string | undefined): string | undefined {
    if (contract === undefined) return plan.coin
    const token = plan.tokens.find((symbol) => contractOf(plan, symbol) === contract)
    if (token !== undefined) return token
    const wrong = plan.wrongTokens.find((name) => contractOf(plan, name) === contract)
    const isTakenFor = wrong !== undefined && ["ETH", "MATIC", ...plan.tokens].includes(wrong)
    return isTakenFor ? contract : wrong
  }

  /** What came to an address up to `head` above block `above`, oldest first, whatever it is. */
  #creditsTo(address: string, head: Block, above: number): ReadonlyArray<Placed> {
    const found: Array<Placed> = []
    for (
      let block = head.lastCredited;
      block !== undefined && block.number > above;
      block = block.parent?.lastCredited
    ) {
      const here: Block = block
      found.unshift(
        ...here.credits.filter((credit) => credit.address === address).map((credit) => ({ block: here, credit }))
      )
    }
    return found
  }

  /**
   * Nothing counts before the chain's first head is known. From then on all does: nobody knew the address before the
   * payment was made, whatever the daemon takes for its first block.
   */
  #beginsAbove({ created_head }: PaymentRow): number {
    return created_head === null ? Number.POSITIVE_INFINITY : -1
  }

  /** What counts for a payment on the branch that ends with `head`: surely, and at most. */
  #counted(payment: PaymentRow, head: Block) {
    const watched = this.#watched(payment.chain)
    const deadline = payment.expires_at + settleGrace
    const right = this.#creditsTo(payment.address, head, this.#beginsAbove(payment)).filter(
      ({ credit }) => this.#currencyOf(watched, credit.contract) === payment.currency
    )
    const isOnTime = ({ time }: Block) => time * 1000 <= deadline
    const surely = right.filter(({ block }) => isOnTime(block))
    // What a provider made of the times may be taken for them as long as it lies within what can be.
    if (watched.areTimesWrong()) return { surely, atMost: right }
    // On time in a block that is gone, and late in the one that has it now: on time, if the daemon saw the first.
    const atMost = right.filter(({ credit }) => watched.chain.inclusions.get(credit.txHash)?.some(isOnTime))
    return { surely, atMost }
  }

  /** After each commit. */
  check(): void {
    this.#checkReceipts()
    this.#checkExceptions()
    for (const payment of this.payments()) {
      const before = this.#seen.get(payment.id)
      if (before?.status !== payment.status) this.#checkTransition(before, payment)
      else if (!["pending", "detecting"].includes(payment.status)) this.#checkFrozen(before, payment)
      this.#seen.set(payment.id, payment)
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
      this.#scans().map(({ chain, head_hash }) => [chain, this.#watched(chain).chain.byHash.get(head_hash)])
    )
    for (const [chain, head] of scanned) {
      if (head === undefined && !this.#watched(chain).isGarbled()) {
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
    for (const row of this.#receipts()) {
      const head = scanned.get(row.chain)
      if (head === undefined) continue
      const watched = this.#watched(row.chain)
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
            this.#currencyOf(watched, credit.contract) === row.currency
        )
      if (!isThere) throw new Violation(`${what()} is a receipt, and the block has no such thing`)
      const key = [row.chain, row.address, row.currency].join(" ")
      totals.set(key, (totals.get(key) ?? 0n) + BigInt(row.amount))
    }
    for (const [key, total] of totals) {
      const [chain, address = "", currency] = key.split(" ") as [ChainName, string, string]
      const head = scanned.get(chain)
      const held = head === undefined ? total : this.#total(chain, address, currency, head)
      if (total > held)
        throw new Violation(`${total} ${currency} counted for ${address} on ${chain}, which has ${held}`)
    }
  }

  /** What a transaction brought to an address of one currency, in whatever block; of coins, what came at all. */
  #broughtBy(hash: string, name: ChainName, address: string, currency: string): bigint {
    const watched = this.#watched(name)
    // Nobody can always tell apart which transaction moved how much inside of contracts.
    if (currency === watched.plan.coin) return this.#came(name, address, currency)
    const amounts = (watched.chain.inclusions.get(hash) ?? []).map((block) =>
      block.credits.reduce(
        (total, { address: to, amount, contract, txHash }) =>
          txHash === hash && to === address && this.#currencyOf(watched, contract) === currency
            ? total + amount
            : total,
        0n
      )
    )
    const [most = 0n] = amounts.toSorted((a, b) => Number(b > a) - Number(a > b))
    return most
  }

  /** What ever came to an address of one currency, in whatever block. */
  #came(name: ChainName, address: string, currency: string): bigint {
    const watched = this.#watched(name)
    let total = 0n
    for (const [hash, [block]] of watched.chain.inclusions) {
      for (const credit of block?.credits ?? []) {
        const isOf = credit.txHash === hash && credit.address === address
        if (isOf && this.#currencyOf(watched, credit.contract) === currency) total += credit.amount
      }
    }
    return total
  }

  /** What invites somebody to send money back has come. */
  #checkExceptions(): void {
    for (const { address, amount, chain, currency, id, kind, outcome, tx_hash } of this.exceptions()) {
      const key = `${id} ${amount}`
      if (outcome !== null || tx_hash === null || kind === "reorged" || this.#checked.has(key)) continue
      // What is too much may have come with the transactions before the one that it is noted with.
      const came =
        kind === "overpaid" ? this.#came(chain, address, currency) : this.#broughtBy(tx_hash, chain, address, currency)
      if (came < BigInt(amount)) {
        throw new Violation(`${kind}: ${amount} ${currency} on ${chain} with ${tx_hash}, which brought ${came}`)
      }
      this.#checked.add(key)
    }
  }

  /** Reading began above this block: what came before it, came before the daemon knew of the chain. */
  #startOf(name: ChainName): number {
    return (this.#statements.scans.all().find((scan) => scan.chain === name)?.start_number ?? 0) - 1
  }

  /** What came above the block `above`. */
  #total(chain: ChainName, address: string, currency: string, head: Block, above = -1): bigint {
    const watched = this.#watched(chain)
    return sum(
      this.#creditsTo(address, head, above).filter(
        ({ credit }) => this.#currencyOf(watched, credit.contract) === currency
      )
    )
  }

  #checkTransition(before: PaymentRow | undefined, after: PaymentRow): void {
    const from = before?.status ?? "pending"
    const name = `payment ${this.#number(after)} (${after.amount} ${after.currency} on ${after.chain})`
    if (from !== after.status && !legal[from]?.includes(after.status)) {
      throw new Violation(`${name} went from ${from} to ${after.status}`)
    }
    const watched = this.#watched(after.chain)
    const { chain, plan } = watched
    // Where the daemon was made to believe in blocks that are nobody's, the chain itself tells what it may end with.
    const isEnd = ["confirmed", "expired", "failed"].includes(after.status)
    const head = this.#scanned(after.chain) ?? (isEnd ? chain.head : undefined)
    if (head === undefined) return
    const { atMost, surely } = this.#counted(after, head)
    const isDeep = ({ block }: Placed) =>
      head.number - block.number + 1 >= plan.confirmations &&
      (this.#requires === undefined || block.number <= chain[this.#requires])
    const isLiedAbout = watched.isLiedAbout(after.address)
    const fail = (why: string) => {
      throw new Violation(`${name} is ${[after.status, after.failure_reason ?? []].flat().join(" ")}, ${why}`)
    }
    const needed = BigInt(after.amount)
    if (after.status === "confirmed") {
      const deep = atMost.filter(isDeep)
      if (sum(deep) < needed) fail(`and only ${sum(deep)} came with ${plan.confirmations} confirmations`)
      const isPayer = deep.some(({ block }) => block.transactions.some(({ hash }) => hash === after.tx_hash))
      if (!isPayer) fail(`by ${after.tx_hash}, which is not among what paid`)
    }
    if (after.status === "detecting" && atMost.length === 0 && !isLiedAbout) fail("and nothing came")
    // What a reorg mines again is in the same commit, but for coins that only the balance tells of.
    const { withheld } = watched
    const told = surely.filter(({ credit }) => !withheld(credit.txHash) && !this.#isToldByBalance(after, credit))
    const isBack = after.status === "pending" && from === "detecting" && told.length > 0 && !isLiedAbout
    if (isBack) fail(`and ${sum(told)} came`)
    const isDecided = after.status === "expired" || (after.status === "failed" && after.failure_reason !== "reorged")
    if (isDecided) this.#checkDecision(after, head, fail)
    if (after.failure_reason === "reorged" && sum(surely) >= needed) fail(`and ${sum(surely)} is there`)
  }

  /** No log and no full block tells of it: coins where blocks are not read, and what came from inside a contract. */
  #isToldByBalance({ chain, currency }: PaymentRow, credit?: Credit): boolean {
    const isInside = credit?.position.startsWith("call:") ?? false
    return currency === this.#watched(chain).plan.coin && (chain !== "ethereum" || isInside)
  }

  /** An end without success is for a payment whose time is over by the chain's clock, and that was not paid. */
  #checkDecision(payment: PaymentRow, head: Block, fail: (why: string) => void): void {
    const watched = this.#watched(payment.chain)
    const { atMost, surely } = this.#counted(payment, head)
    let settled: Block | undefined = head
    for (let i = 1; i < watched.plan.confirmations; i++) settled = settled?.parent
    if ((settled?.time ?? 0) * 1000 <= payment.expires_at + settleGrace) fail("and its time is not over")
    const isDoubtful = watched.isLiedAbout(payment.address)
    const known = surely.filter(
      ({ credit }) => this.#strict.silence || !(isDoubtful || watched.withheld(credit.txHash))
    )
    if (sum(known) >= BigInt(payment.amount)) fail(`and ${sum(known)} came in time`)
    const reason = payment.failure_reason
    if (reason !== "insufficient_amount" && known.length > 0) fail(`and ${sum(known)} came in time`)
    if (isDoubtful && !this.#strict.endings) return
    if (reason === "insufficient_amount" && atMost.length === 0) fail("and nothing came")
    const isCertain = surely.length === atMost.length && known.length === surely.length
    if (reason === "insufficient_amount" && isCertain && BigInt(payment.amount_received ?? 0) !== sum(surely)) {
      fail(`for ${payment.amount_received}, and ${sum(surely)} came in time`)
    }
    const others = this.#othersTo(payment)
    const here = others.filter(({ chain, credit, number }) => {
      if (!this.#strict.silence && watched.withheld(credit.txHash)) return false
      const isLog = credit.contract !== undefined || payment.chain === "ethereum"
      return chain === payment.chain && isLog && number <= (settled?.number ?? 0)
    })
    if (payment.status === "expired" && here.length > 0) fail(`and ${here.length} wrong tokens came`)
    if (reason === "wrong_token" && !others.some(({ chain }) => chain === payment.chain)) fail("and none came")
    if (reason === "wrong_chain" && !others.some(({ chain }) => chain !== payment.chain)) fail("and none came")
  }

  /** Everything known that came to a payment's address and is not what it asks for, on any chain. */
  #othersTo(payment: PaymentRow) {
    return [...this.#chains].flatMap(([chain, watched]) => {
      const head = this.#scanned(chain)
      const above = chain === payment.chain ? this.#beginsAbove(payment) : -1
      return (head === undefined ? [] : this.#creditsTo(payment.address, head, above)).flatMap(({ block, credit }) => {
        const currency = this.#currencyOf(watched, credit.contract)
        const isOther = currency !== undefined && (chain !== payment.chain || currency !== payment.currency)
        return isOther ? [{ chain, credit, number: block.number }] : []
      })
    })
  }

  #number({ id }: PaymentRow): number {
    return this.payments().findIndex((payment) => payment.id === id)
  }

  /** Whether every chain was read up to its head. */
  isCaughtUp(): boolean {
    return [...this.#chains].every(([name, { chain }]) => this.#scanned(name) === chain.head)
  }

  /** When the daemon has read everything, and nothing is wrong with anybody. */
  checkQuiet(everything: boolean): void {
    for (const [
      chain,
      {
        chain: { head }
      }
    ] of this.#chains) {
      const scanned = this.#scanned(chain)
      if (scanned !== head)
        throw new Violation(`${chain} was read up to ${scanned?.number}, and its head is ${head.number}`)
    }
    for (const payment of this.payments()) {
      const { plan, chain } = this.#watched(payment.chain)
      const deep = this.#counted(payment, chain.head).surely.filter(
        ({ block }) => chain.head.number - block.number + 1 >= plan.confirmations
      )
      const isOpen = payment.status === "pending" || payment.status === "detecting"
      // What came and went between two looks at the balance is told by the last look, at the deadline.
      const isEmptied =
        accountAt(chain.head, payment.address).nonce > 0 &&
        deep.some(({ credit }) => this.#isToldByBalance(payment, credit))
      const { areTimesWrong, isLiedAbout, withheld } = this.#watched(payment.chain)
      // While two providers disagree about a block's time its receipts are asked about ever less often.
      const isAwaited = payment.status === "detecting" && areTimesWrong()
      const isKnown =
        everything || !(isAwaited || isLiedAbout(payment.address) || deep.some(({ credit }) => withheld(credit.txHash)))
      if (isOpen && isKnown && !isEmptied && !this.#isUnattributed(payment) && sum(deep) >= BigInt(payment.amount)) {
        throw new Violation(
          `payment ${this.#number(payment)} is ${payment.status}, and ${sum(deep)} of ${payment.amount} came`
        )
      }
    }
    if (everything) this.#checkComplete()
  }

  /** Every token that came to a payment's address has its receipt, on whatever chain, and coins where blocks are read. */
  #checkComplete(): void {
    const counted = new Map<string, bigint>()
    const rows = this.#receipts()
    const invented = new Set(this.#strict.leftovers ? [] : this.#notThere(rows))
    for (const row of rows) {
      if (invented.has(row)) continue
      const { address, amount, chain, currency } = row
      const key = [chain, address, currency].join(" ")
      counted.set(key, (counted.get(key) ?? 0n) + BigInt(amount))
    }
    for (const { address } of this.payments()) {
      for (const [name, { chain, plan }] of this.#chains) {
        const currencies = [
          ...plan.tokens,
          ...plan.wrongTokens.map((wrong) => this.#currencyOf(this.#watched(name), contractOf(plan, wrong)))
        ]
        for (const currency of currencies) {
          if (currency === undefined) continue
          const held = this.#total(name, address, currency, chain.head, this.#startOf(name))
          const found = counted.get([name, address, currency].join(" ")) ?? 0n
          if (found !== held)
            throw new Violation(`${held} ${currency} came to ${address} on ${name}, and ${found} is counted`)
        }
      }
    }
  }

  /** Receipts of what no block has, each as often as it is there too often. */
  #notThere(rows: ReadonlyArray<ReceiptRow>): ReadonlyArray<ReceiptRow> {
    const taken = new Set<Credit>()
    return rows.filter((row) => {
      const watched = this.#watched(row.chain)
      const block = watched.chain.byHash.get(row.block_hash)
      if (block === undefined && watched.isGarbled()) return true
      if (!watched.isLiedAbout(row.address)) return false
      const credit = block?.credits.find(
        (one) =>
          !taken.has(one) &&
          one.txHash === row.tx_hash &&
          one.address === row.address &&
          one.amount === BigInt(row.amount) &&
          this.#currencyOf(watched, one.contract) === row.currency
      )
      if (credit !== undefined) taken.add(credit)
      return credit === undefined
    })
  }

  /** Whether what was invented on a chain has been in the database for long enough that others were asked about it. */
  isInventionKnown(name: ChainName, now: number): boolean {
    const { chain, isLiedAbout, plan } = this.#watched(name)
    const untrue = this.#notThere(this.#receipts()).filter((row) => row.chain === name && isLiedAbout(row.address))
    const isDeep = (row: ReceiptRow) => chain.head.number - row.block_number > plan.confirmations + 3
    return untrue.length > 0 && untrue.every((row) => isDeep(row) && row.seen_at <= now - 20_000)
  }

  /** When every deadline is long over. `lost`: payments that are no longer in the database. */
  checkEnd(lost: ReadonlyArray<PaymentRow> = []): void {
    const held = this.#strict.leftovers ? [] : this.#notThere(this.#receipts()).map(({ address }) => address)
    for (const payment of this.payments()) {
      const isOpen = payment.status === "pending" || payment.status === "detecting"
      if (isOpen && !this.#isUnattributed(payment) && !held.includes(payment.address)) {
        throw new Violation(`payment ${this.#number(payment)} is still ${payment.status} long after its time`)
      }
      const { atMost } = this.#counted(payment, this.#watched(payment.chain).chain.head)
      if (payment.status === "confirmed" && sum(atMost) < BigInt(payment.amount)) {
        throw new Violation(`payment ${this.#number(payment)} is confirmed, and ${sum(atMost)} is there in the end`)
      }
    }
    for (const { address } of lost) this.#checkLost(address)
  }

  /** Tokens at an address whose payment was lost are told of. */
  #checkLost(address: string): void {
    for (const [name, { chain, plan }] of this.#chains) {
      for (const currency of plan.tokens) {
        const held = this.#total(name, address, currency, chain.head, this.#startOf(name))
        const told = this.exceptions()
          .filter((one) => one.kind === "unknown_payment" && one.address === address && one.chain === name)
          .reduce(
            (total, one) => total + (one.currency === currency && one.outcome === null ? BigInt(one.amount) : 0n),
            0n
          )
        if (told !== held) {
          throw new Violation(`${held} ${currency} on ${name} is at ${address}, a lost payment's, and ${told} is told`)
        }
      }
    }
  }

  #isUnattributed({ address, chain }: PaymentRow): boolean {
    const isUntold = !this.#strict.inside && !this.#watched(chain).tellsInside
    const isOf = (position: string) => position === "unattributed" || (isUntold && position.startsWith("call:"))
    return this.#receipts().some((row) => row.address === address && isOf(row.position))
  }

  /** What an address holds now, for those who want to spend it. */
  balanceOf(chain: ChainName, address: string): bigint {
    return accountAt(this.#watched(chain).chain.head, address).balance
  }
}
