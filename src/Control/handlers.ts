import { Effect, Redacted } from "effect"
import { getAddress, type Hex } from "viem"
import { walletContext } from "../Auth/AccountsRepo.ts"
import * as UsageRepo from "../Auth/UsageRepo.ts"
import { Accounts, Keys } from "../Auth.ts"
import { claim } from "../Chains/claim.ts"
import type { MatchSet } from "../Chains/MatchSet.ts"
import type { Networks } from "../Chains/Networks.ts"
import { rescan } from "../Chains/repair.ts"
import { Chains } from "../Chains.ts"
import type { Account } from "../Domain/Account.ts"
import { UnknownAccount, WalletInOtherMode } from "../Domain/AccountErrors.ts"
import type { ApiKey } from "../Domain/ApiKey.ts"
import { type Mode, modes } from "../Domain/Chain.ts"
import { newAccountId } from "../Domain/Ids.ts"
import { RepairRefused } from "../Domain/RepairErrors.ts"
import { iso } from "../Domain/Timestamp.ts"
import type { Outbox } from "../Events/Outbox.ts"
import { abandon, accept } from "../Payments/decisions.ts"
import * as ExceptionsRepo from "../Payments/ExceptionsRepo.ts"
import { hdWallet } from "../Payments/hdWallet.ts"
import { Jumps } from "../Payments/jumps.ts"
import * as PaymentsRepo from "../Payments/PaymentsRepo.ts"
import { refunded } from "../Payments/refunds.ts"
import type { Settlement } from "../Payments/Settlement.ts"
import { allWalletUsers } from "../Payments/walletUsers.ts"
import { Secrets } from "../Secrets.ts"
import { Settings } from "../Settings.ts"
import { Reader, StoreUnavailable, type Writer } from "../Sql.ts"
import { type DefaultSecrets, defaultSecrets } from "../Webhooks/DefaultSecrets.ts"
import type { DeliveryClient } from "../Webhooks/DeliveryClient.ts"
import { SigningKeys } from "../Webhooks/SigningKeys.ts"
import * as Deliveries from "./deliveryHandlers.ts"
import { ListDeliveries, Redeliver, RedeliverRange, SendTest, ShowDelivery } from "./deliveryRequests.ts"
import { type Handler, on } from "./handler.ts"
import * as Requests from "./requests.ts"
import { decisionView, exceptionView, paymentView, storyOf } from "./story.ts"

const accountView = ({ createdAt, id, name, ownWallets }: Account) => ({
  id,
  name,
  createdAt: iso(createdAt),
  wallets: ownWallets.length === 0 ? ("shared" as const) : ownWallets
})

const keyView = (key: ApiKey): Requests.KeyView => ({
  id: key.id,
  name: key.name,
  account: key.account,
  mode: key.mode,
  lastFour: key.lastFour,
  permissions: key.permissions,
  createdAt: iso(key.createdAt),
  ...(key.lastUsedAt === undefined ? {} : { lastUsedAt: iso(key.lastUsedAt) }),
  ...(key.expiresAt === undefined ? {} : { expiresAt: iso(key.expiresAt) }),
  ...(key.revokedAt === undefined ? {} : { revokedAt: iso(key.revokedAt) })
})

const createKey = on(
  Requests.CreateKey,
  Effect.fnUntraced(function* ({ account, expiresIn, mode, name, permissions }) {
    const keys = yield* Keys
    const { key, record } = yield* keys.create({ account, mode, name, permissions, expiresIn })
    return { id: record.id, key: Redacted.value(key), mode, permissions, account }
  })
)

const listKeys = on(Requests.ListKeys, () =>
  Effect.flatMap(Keys, (keys) => Effect.map(keys.list, (all) => all.map(keyView)))
)

const revokeKey = on(
  Requests.RevokeKey,
  Effect.fnUntraced(function* ({ id }) {
    const keys = yield* Keys
    const key = yield* keys.revoke(id)
    if (key === undefined) {
      return yield* new Requests.NotFound({ message: `There is no key ${id}: tilld keys list names all` })
    }
    return keyView(key)
  })
)

const listAccounts = on(Requests.ListAccounts, () =>
  Effect.gen(function* () {
    const accounts = yield* Accounts
    const { quotaBytes } = (yield* Settings).accounts
    const used = new Map(
      (yield* UsageRepo.all(yield* Reader)).map(({ account, reserved, stored }) => [account, stored + reserved])
    )
    return (yield* accounts.list).map((account) => ({
      ...accountView(account),
      usedBytes: used.get(account.id) ?? 0,
      quotaBytes
    }))
  })
)

const listPayments = on(
  Requests.ListPayments,
  Effect.fnUntraced(function* ({ account, chain, limit, modes, status }) {
    const reader = yield* Reader
    const pages = yield* Effect.forEach(
      modes,
      (mode) => PaymentsRepo.list(reader, { account, mode }, { status, chain, limit }),
      { concurrency: 1 }
    )
    const newestFirst = pages.flat().sort((a, b) => b.createdAt - a.createdAt || b.sequence - a.sequence)
    return newestFirst.slice(0, limit).map(paymentView)
  })
)

const notFound = (what: string) =>
  new Requests.NotFound({ message: `There is no ${what}: tilld payments list and exceptions show the ids` })

const showPayment = on(
  Requests.ShowPayment,
  Effect.fnUntraced(function* ({ id, limit }) {
    const reader = yield* Reader
    const payment = yield* PaymentsRepo.byId(reader, id)
    if (payment === undefined) return yield* notFound(`payment ${id}`)
    return yield* storyOf(reader, payment, limit)
  })
)

const listExceptions = on(
  Requests.ListExceptions,
  Effect.fnUntraced(function* (filter) {
    const reader = yield* Reader
    const { after, payment } = filter
    // An empty list would say that nothing waits for a decision.
    if (payment && !(yield* PaymentsRepo.byId(reader, payment))) return yield* notFound(`payment ${payment}`)
    if (after && !(yield* ExceptionsRepo.byId(reader, after))) return yield* notFound(`exception ${after}`)
    return (yield* ExceptionsRepo.open(reader, filter)).map(exceptionView)
  })
)

const orNotFound = <A>(id: string, decided: A | undefined) =>
  decided === undefined ? notFound(`payment ${id}, nor an exception of a lost one`) : Effect.succeed(decided)

const acceptPayment = on(
  Requests.AcceptPayment,
  Effect.fnUntraced(function* ({ id, tx }) {
    return decisionView(yield* orNotFound(id, yield* accept(id, tx)))
  })
)

const refundedPayment = on(
  Requests.RefundedPayment,
  Effect.fnUntraced(function* ({ amount, exceptions, id }) {
    const returned = { exceptions, amount: amount === undefined ? undefined : BigInt(amount) }
    const result = yield* orNotFound(id, yield* refunded(id, returned))
    return { ...decisionView(result), closed: result.closed.map(exceptionView) }
  })
)

const abandonPayments = on(
  Requests.AbandonPayments,
  Effect.fnUntraced(function* ({ chain, mode }) {
    return { chain, mode, abandoned: yield* abandon({ chain, mode }) }
  })
)

const jumpAddresses = on(
  Requests.JumpAddresses,
  Effect.fnUntraced(function* ({ by }) {
    const { jump } = yield* Jumps
    const users = yield* allWalletUsers
    return (yield* jump(by)).map((jumped) => ({
      ...jumped,
      usedBy: users.filter(({ fingerprint }) => fingerprint === jumped.wallet).map(({ name }) => name)
    }))
  })
)

/** An extended public key for an account, sealed, unless the configuration uses that wallet in the other mode. */
const accountWallet = Effect.fnUntraced(function* (account: Account["id"], mode: Mode, xpub: string) {
  const { wallets } = yield* Settings
  const { seal } = yield* Secrets
  const { fingerprint } = hdWallet(xpub)
  const other = mode === "live" ? wallets.test : wallets.live
  if (other !== undefined && hdWallet(Redacted.value(other)).fingerprint === fingerprint) {
    return yield* WalletInOtherMode.of(mode)
  }
  return { mode, fingerprint, sealed: seal(xpub, walletContext(account, mode)) }
})

const createAccount = on(
  Requests.CreateAccount,
  Effect.fnUntraced(function* ({ name, wallets }) {
    const accounts = yield* Accounts
    const id = newAccountId()
    const own = yield* Effect.forEach(
      modes.flatMap((mode) => (wallets[mode] === undefined ? [] : [[mode, wallets[mode]] as const])),
      ([mode, xpub]) => accountWallet(id, mode, xpub),
      { concurrency: 1 }
    )
    return accountView(yield* accounts.create({ id, name, wallets: own }))
  })
)

const mustExist = Effect.fnUntraced(function* (account: Account["id"]) {
  const accounts = yield* Accounts
  const exists = yield* accounts.exists(account)
  if (!exists) return yield* UnknownAccount.of(account)
})

const secretView = ({ current, previous }: DefaultSecrets): Requests.SecretView => ({
  secret: Redacted.value(current),
  ...(previous === undefined
    ? {}
    : { previous: { secret: Redacted.value(previous.secret), until: iso(previous.until) } })
})

const showSecret = on(
  Requests.ShowSecret,
  Effect.fnUntraced(function* ({ account, mode }) {
    yield* mustExist(account)
    return secretView(yield* defaultSecrets({ account, mode }))
  })
)

const rotateSecret = on(
  Requests.RotateSecret,
  Effect.fnUntraced(function* ({ account, mode, overlap }) {
    yield* mustExist(account)
    const keys = yield* SigningKeys
    return secretView(yield* keys.rotate({ account, mode }, overlap))
  })
)

/** What a repair could not do, for the operator. */
const refused = <E extends { readonly message: string }>(error: E | StoreUnavailable | RepairRefused) =>
  error instanceof StoreUnavailable || error instanceof RepairRefused
    ? error
    : new RepairRefused({ message: error.message })

/** The daemon answers a request within forty seconds, and a part that fails is tried for twenty. */
const rescanBudget = "5 seconds"

const rescanBlocks = on(
  Requests.Rescan,
  Effect.fnUntraced(function* ({ chain, from, mode, to }) {
    const chains = yield* Chains
    const exclusively = chains.exclusively({ chain, mode })
    const range = { from, ...(to === undefined ? {} : { to }) }
    return yield* Effect.mapError(rescan(exclusively, range, rescanBudget), refused)
  })
)

const claimTransaction = on(
  Requests.Claim,
  Effect.fnUntraced(function* ({ chain, mode, txHash }) {
    const chains = yield* Chains
    const found = yield* Effect.mapError(claim(chains.exclusively({ chain, mode }), txHash), refused)
    const credits = found.credits.map(({ address, amount, currency, payment }) => ({
      address: getAddress(address as Hex),
      currency,
      amount: amount.toString(),
      ...(payment === undefined ? {} : { payment })
    }))
    return { ...found, credits }
  })
)

type PlainServices = Accounts | Jumps | Keys | Outbox | Reader | Settings | Settlement | Writer
type SealedServices = PlainServices | Secrets | SigningKeys
type SendingServices = DeliveryClient | Reader | SigningKeys
type ChainedServices = Chains | MatchSet | Networks | Outbox | Reader | Settings | Writer

/** By the tag of their request: what needs no secret. */
export const plain: ReadonlyMap<string, Handler<PlainServices>> = new Map<string, Handler<PlainServices>>([
  [Requests.CreateKey._tag, createKey],
  [Requests.ListKeys._tag, listKeys],
  [Requests.RevokeKey._tag, revokeKey],
  [Requests.ListAccounts._tag, listAccounts],
  [Requests.ListPayments._tag, listPayments],
  [Requests.ShowPayment._tag, showPayment],
  [Requests.ListExceptions._tag, listExceptions],
  [Requests.RefundedPayment._tag, refundedPayment],
  [Requests.AbandonPayments._tag, abandonPayments],
  [Requests.JumpAddresses._tag, jumpAddresses],
  [ListDeliveries._tag, Deliveries.list],
  [ShowDelivery._tag, Deliveries.show],
  [Redeliver._tag, Deliveries.redeliver],
  [RedeliverRange._tag, Deliveries.redeliverRange]
])

/** What needs the master key too, which an operator at a shell may not have. */
export const sealed: ReadonlyMap<string, Handler<SealedServices>> = new Map<string, Handler<SealedServices>>([
  [Requests.CreateAccount._tag, createAccount],
  [Requests.ShowSecret._tag, showSecret],
  [Requests.RotateSecret._tag, rotateSecret]
])

/** What reads the chains. */
export const chained: ReadonlyMap<string, Handler<ChainedServices>> = new Map<string, Handler<ChainedServices>>([
  [Requests.AcceptPayment._tag, acceptPayment],
  [Requests.Rescan._tag, rescanBlocks],
  [Requests.Claim._tag, claimTransaction]
])

/** What calls a merchant's server. */
export const sending: ReadonlyMap<string, Handler<SendingServices>> = new Map<string, Handler<SendingServices>>([
  [SendTest._tag, Deliveries.sendTest]
])

/** What the daemon must have to do all of it. */
export type ControlServices = SealedServices | ChainedServices | SendingServices
