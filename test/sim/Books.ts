import type { ChainName } from "../../src/Domain/Chain.ts"
import { accountAt, type Block, type Credit } from "./Block.ts"
import { contractOf, settleGrace } from "./plans.ts"
import {
  type DeliveryRow,
  type ExceptionRow,
  type PaymentRow,
  type ReceiptRow,
  type RefundPartRow,
  type ScanRow,
  type SearchRow,
  statements
} from "./rows.ts"
import { engine, type Rows } from "./Store.ts"
import { type Strictness, usualStrictness, Violation, type Watched } from "./watched.ts"

export interface Placed {
  readonly block: Block
  readonly credit: Credit
  /** It came as less than the payment's floor. */
  readonly isSmall?: boolean
}

export const sum = (credits: ReadonlyArray<Placed>): bigint =>
  credits.reduce((total, { credit }) => total + credit.amount, 0n)

/**
 * The contents of the database, and of the chains themselves: which money counts is decided here a second time, in a few
 * independent lines.
 */
export class Books {
  readonly #path: string
  #rows: Rows
  #statements: ReturnType<typeof statements>
  readonly chains: ReadonlyMap<ChainName, Watched>
  readonly requires: "safe" | "finalized" | undefined
  readonly strict: Readonly<Strictness>
  /** Payments that a person has confirmed, with whatever money. */
  readonly accepted = new Set<string>()
  /** Payments that a person's decision confirmed, also with all of their money. */
  readonly decided = new Set<string>()

  /** `requires`: the tag that every payment waits for. */
  constructor(
    path: string,
    chains: ReadonlyMap<ChainName, Watched>,
    requires?: "safe" | "finalized",
    strict = usualStrictness
  ) {
    this.#path = path
    this.#rows = engine.rows(path)
    this.#statements = statements(this.#rows)
    this.chains = chains
    this.requires = requires
    this.strict = strict
  }

  /** Another file has taken the place of the database. */
  reopen(): void {
    this.#rows.close()
    this.#rows = engine.rows(this.#path)
    this.#statements = statements(this.#rows)
  }

  close(): void {
    this.#rows.close()
  }

  payments(): ReadonlyArray<PaymentRow> {
    return this.#statements.payments()
  }

  /** Every event with each target that it is owed to, in their order. */
  deliveries(): ReadonlyArray<DeliveryRow> {
    return this.#statements.deliveries()
  }

  /** Whether an event is still to be delivered. */
  isOwed(): boolean {
    return this.deliveries().some(({ status }) => status !== "delivered")
  }

  /** Money that needs a person, oldest first. */
  exceptions(): ReadonlyArray<ExceptionRow> {
    return this.#statements.exceptions()
  }

  /** What goes back, of each transaction. */
  refundParts(): ReadonlyArray<RefundPartRow> {
    return this.#statements.refundParts()
  }

  watched(chain: ChainName): Watched {
    const watched = this.chains.get(chain)
    if (watched === undefined) throw new Violation(`${chain} is not a chain of this simulation`)
    return watched
  }

  /** The block up to which the daemon says it has read the chain; undefined before the first, and where it was lied to. */
  scanned(chain: ChainName): Block | undefined {
    const row = this.scans().find((scan) => scan.chain === chain)
    return row && this.watched(chain).chain.byHash.get(row.head_hash)
  }

  scans(): ReadonlyArray<ScanRow> {
    return this.#statements.scans()
  }

  searches(): ReadonlyArray<SearchRow> {
    return this.#statements.searches()
  }

  receipts(): ReadonlyArray<ReceiptRow> {
    return this.#statements.receipts()
  }

  /** The names under which a contract's tokens, or the coin, are known; undefined of what never counts. */
  currencyOf({ plan }: Watched, contract: string | undefined): string | undefined {
    if (contract === undefined) return plan.coin
    const token = plan.tokens.find((symbol) => contractOf(plan, symbol) === contract)
    if (token !== undefined) return token
    const wrong = plan.wrongTokens.find((name) => contractOf(plan, name) === contract)
    const isTakenFor = wrong !== undefined && ["ETH", "MATIC", ...plan.tokens].includes(wrong)
    return isTakenFor ? contract : wrong
  }

  /** What came to an address up to `head` above block `above`, oldest first, whatever it is. */
  creditsTo(address: string, head: Block, above: number): ReadonlyArray<Placed> {
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
   * Nothing counts before the chain's first head is known. From then on all does: no one knew the address before the
   * payment was made, whatever the daemon takes for its first block.
   */
  beginsAbove({ created_head }: PaymentRow): number {
    return created_head === null ? Number.POSITIVE_INFINITY : -1
  }

  /**
   * Credits minus refunds, which are recorded with the transactions that brought the money; those that are recorded without
   * one are taken from what only the balance shows where `isAll`.
   */
  #left(credits: ReadonlyArray<Placed>, payment: PaymentRow, isAll: boolean): ReadonlyArray<Placed> {
    const { address, chain, currency } = payment
    const sent = new Map<string | null, bigint>()
    for (const one of this.refundParts()) {
      if (one.address !== address || one.chain !== chain || one.currency !== currency) continue
      sent.set(one.tx_hash, (sent.get(one.tx_hash) ?? 0n) + BigInt(one.amount))
    }
    const rests = new Map<Placed, bigint>()
    // Of a transaction's money what is credited goes back first.
    for (const placed of [...credits].sort((a, b) => Number(a.isSmall === true) - Number(b.isSmall === true))) {
      const { credit } = placed
      const recorded = isAll && this.isReportedByBalance(payment, credit) ? [credit.txHash, null] : [credit.txHash]
      let { amount } = credit
      for (const hash of recorded) {
        const back = sent.get(hash) ?? 0n
        const rest = amount > back ? amount - back : 0n
        sent.set(hash, back - (amount - rest))
        amount = rest
      }
      rests.set(placed, amount)
    }
    return credits.flatMap((placed) => {
      const amount = rests.get(placed) ?? 0n
      return amount === 0n ? [] : [{ ...placed, credit: { ...placed.credit, amount } }]
    })
  }

  /** What is credited of money in the order of the chain: all but the small, and the small that completes the amount. */
  #credited({ amount }: PaymentRow, came: ReadonlyArray<Placed>): ReadonlyArray<Placed> {
    const needed = BigInt(amount)
    let reached = 0n
    return came.filter(({ credit, isSmall }) => {
      const completes = reached < needed && reached + credit.amount >= needed
      if (isSmall && !completes) return false
      reached += credit.amount
      return true
    })
  }

  /** What came to a payment in what it asks for below its floor, each by itself. */
  smallTo({ address, chain, currency, floor }: PaymentRow): bigint {
    const watched = this.watched(chain)
    const isIts = ({ credit }: Placed) =>
      this.currencyOf(watched, credit.contract) === currency && credit.amount < BigInt(floor)
    return sum(this.creditsTo(address, watched.chain.head, -1).filter(isIts))
  }

  /** What counts for a payment on the branch that ends with `head`: surely, and at most. */
  counted(payment: PaymentRow, head: Block) {
    const watched = this.watched(payment.chain)
    const deadline = payment.expires_at + settleGrace
    const came = this.creditsTo(payment.address, head, this.beginsAbove(payment))
      .filter(({ credit }) => this.currencyOf(watched, credit.contract) === payment.currency)
      .map((placed): Placed => ({ ...placed, isSmall: placed.credit.amount < BigInt(payment.floor) }))
    const right = this.#left(came, payment, false)
    const isOnTime = ({ time }: Block) => time * 1000 <= deadline
    // What a reorg puts below the block where reading began is not read.
    const begun = this.startOf(payment.chain)
    const surely = this.#credited(
      payment,
      this.#left(came, payment, true).filter(({ block }) => isOnTime(block) && block.number > begun)
    )
    // What a provider made of the times may be taken for them as long as it lies within what can be.
    const atMostOf = (all: ReadonlyArray<Placed>) => {
      const credited = this.#credited(payment, all)
      // Small coins that only the balance shows may have been found as one.
      return all.filter((one) => credited.includes(one) || this.isReportedByBalance(payment, one.credit))
    }
    if (watched.areTimesWrong()) return { surely, atMost: atMostOf(right) }
    // On time in a block that is gone, and late in the one that has it now: on time, if the daemon saw the first.
    const atMost = right.filter(({ credit }) => watched.chain.inclusions.get(credit.txHash)?.some(isOnTime))
    return { surely, atMost: atMostOf(atMost) }
  }

  /** What a transaction brought to an address of one currency, in whatever block; of coins, what came at all. */
  broughtBy(hash: string, name: ChainName, address: string, currency: string): bigint {
    const watched = this.watched(name)
    // It cannot always be determined which transaction moved how much inside contracts.
    if (currency === watched.plan.coin) return this.came(name, address, currency)
    const amounts = (watched.chain.inclusions.get(hash) ?? []).map((block) =>
      block.credits.reduce(
        (total, { address: to, amount, contract, txHash }) =>
          txHash === hash && to === address && this.currencyOf(watched, contract) === currency ? total + amount : total,
        0n
      )
    )
    const [most = 0n] = amounts.toSorted((a, b) => Number(b > a) - Number(a > b))
    return most
  }

  /** What ever came to an address of one currency, in whatever block. */
  came(name: ChainName, address: string, currency: string): bigint {
    const watched = this.watched(name)
    let total = 0n
    for (const [hash, [block]] of watched.chain.inclusions) {
      for (const credit of block?.credits ?? []) {
        const isOf = credit.txHash === hash && credit.address === address
        if (isOf && this.currencyOf(watched, credit.contract) === currency) total += credit.amount
      }
    }
    return total
  }

  /** Reading began above this block: what came before it, came before the daemon knew of the chain. */
  startOf(name: ChainName): number {
    return (this.#statements.scans().find((scan) => scan.chain === name)?.start_number ?? 0) - 1
  }

  /** What came above the block `above`. */
  total(chain: ChainName, address: string, currency: string, head: Block, above = -1): bigint {
    const watched = this.watched(chain)
    return sum(
      this.creditsTo(address, head, above).filter(
        ({ credit }) => this.currencyOf(watched, credit.contract) === currency
      )
    )
  }

  /** Neither a log nor a full block shows it: coins where blocks are not read, and what came from inside a contract. */
  isReportedByBalance({ chain, currency }: PaymentRow, credit?: Credit): boolean {
    const isInside = credit?.position.startsWith("call:") ?? false
    return currency === this.watched(chain).plan.coin && (chain !== "ethereum" || isInside)
  }

  /** Whether an exception reports unattributed money at a payment's address; late, where it may have been late. */
  isReportedAsUnattributed({ address, chain }: PaymentRow): boolean {
    const isOf = ({ kind, tx_hash }: ExceptionRow) => kind === "unattributed" || (kind === "late" && tx_hash === null)
    return this.exceptions().some(
      (one) => isOf(one) && one.address === address && one.chain === chain && one.outcome === null
    )
  }

  /** Everything known that came to a payment's address and is not what it asks for, on any chain. */
  othersTo(payment: PaymentRow) {
    return [...this.chains].flatMap(([chain, watched]) => {
      const above = chain === payment.chain ? this.beginsAbove(payment) : -1
      const head = this.scanned(chain) ?? watched.chain.head
      return this.creditsTo(payment.address, head, above).flatMap(({ block, credit }) => {
        const currency = this.currencyOf(watched, credit.contract)
        const isOther = currency !== undefined && (chain !== payment.chain || currency !== payment.currency)
        return isOther ? [{ chain, credit, block }] : []
      })
    })
  }

  number({ id }: PaymentRow): number {
    return this.payments().findIndex((payment) => payment.id === id)
  }

  /** How many blocks the furthest chain is ahead of what was read of it. */
  lag(): number {
    return Math.max(
      0,
      ...Array.from(this.chains, ([name, { chain }]) => chain.head.number - (this.scanned(name)?.number ?? 0))
    )
  }

  /** Whether every chain was read up to its head. */
  isCaughtUp(): boolean {
    return [...this.chains].every(([name, { chain }]) => this.scanned(name) === chain.head)
  }

  /** Receipts of what no block has, each as often as it is there too often. */
  notThere(rows: ReadonlyArray<ReceiptRow>): ReadonlyArray<ReceiptRow> {
    const taken = new Set<Credit>()
    return rows.filter((row) => {
      const watched = this.watched(row.chain)
      const block = watched.chain.byHash.get(row.block_hash)
      if (block === undefined && watched.isGarbled()) return true
      if (!watched.isLiedAbout(row.address)) return false
      const credit = block?.credits.find(
        (one) =>
          !taken.has(one) &&
          one.txHash === row.tx_hash &&
          one.address === row.address &&
          one.amount === BigInt(row.amount) &&
          this.currencyOf(watched, one.contract) === row.currency
      )
      if (credit !== undefined) taken.add(credit)
      return credit === undefined
    })
  }

  isUnattributed({ address, chain }: PaymentRow): boolean {
    const isUnattributable = !this.strict.inside && !this.watched(chain).tellsInside
    const isOf = (position: string) => position === "unattributed" || (isUnattributable && position.startsWith("call:"))
    return this.receipts().some((row) => row.address === address && isOf(row.position))
  }

  /** Unattributed coins came to it late or on time, and no one knows which. */
  mayBeOnTime({ address, chain, expires_at }: PaymentRow): boolean {
    return this.receipts().some(
      (row) =>
        row.address === address &&
        row.chain === chain &&
        row.since_time !== null &&
        row.since_time * 1000 <= expires_at + settleGrace
    )
  }

  /** The current balance of an address, for spending. */
  balanceOf(chain: ChainName, address: string): bigint {
    return accountAt(this.watched(chain).chain.head, address).balance
  }
}
