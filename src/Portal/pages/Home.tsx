/** The home page: what needs a person first, the first steps of a new account, then what came in. */
import { BigDecimal, Clock, Effect } from "effect"
import type { ComponentChildren } from "preact"
import * as KeysRepo from "../../Auth/KeysRepo.ts"
import * as PasskeysRepo from "../../Auth/PasskeysRepo.ts"
import * as PasswordsRepo from "../../Auth/PasswordsRepo.ts"
import { shopOf } from "../../Auth/shops.ts"
import * as UsageRepo from "../../Auth/UsageRepo.ts"
import { type CloseAccount, closeAccounts } from "../../Auth/UsageRepo.ts"
import { type ChainHealth, Chains } from "../../Chains.ts"
import { chainTraits } from "../../Domain/Chain.ts"
import { decimalsOf, decimalsOn, wholeTokens } from "../../Domain/Currency.ts"
import type { PaymentException } from "../../Domain/Exception.ts"
import type { Payment } from "../../Domain/Payment.ts"
import { isLess } from "../../Domain/Quote.ts"
import type { Shop } from "../../Domain/Shop.ts"
import { bytesText } from "../../lib/quantities.ts"
import { Mark } from "../../Pages/marks.tsx"
import { Uncollected, type UncollectedAmount, worthOfWaiting } from "../../Payments/addresses/Uncollected.ts"
import { list as listExceptions } from "../../Payments/ExceptionsRepo.ts"
import { references } from "../../Payments/PaymentListRepo.ts"
import { Payments } from "../../Payments.ts"
import { Prices } from "../../Quotes/Prices.ts"
import { Settings, type SettingsShape } from "../../Settings.ts"
import { type Db, Reader } from "../../Sql.ts"
import { type FailingTarget, failingTargets } from "../../Webhooks/queue/DeliveryLogRepo.ts"
import * as EndpointsRepo from "../../Webhooks/queue/EndpointsRepo.ts"
import { framedReply } from "../answers.tsx"
import { countText, fiatText, Notice, Table } from "../components/values.tsx"
import { type PortalRoute, pageRoute, pathOf } from "../route.ts"
import { mayAs, mostInBadge, type Viewer } from "../Viewer.ts"
import { ExceptionAmount, kindWords } from "./exceptionView.tsx"
import { paymentColumns } from "./Payments.tsx"
import { Charts, Cut, Figure, IncomeFigure, overviewOf, shownDays, Tokens } from "./sums.tsx"

/** A shop that takes money knows its way: with so many payments within 30 days the steps are not shown. */
const enough = 10

interface Step {
  readonly text: string
  readonly isDone: boolean
  readonly href: string
  /** What its button says. */
  readonly act: string
}

interface Known {
  readonly now: number
  readonly shop: Shop
  /** Of the person who looks. */
  readonly hasCredentials: boolean
  /** Payments within 30 days. */
  readonly confirmed: number
}

/** The steps; none where all are done, or not needed. */
const stepsOf = Effect.fn("Portal.firstSteps")(function* (
  db: Db,
  viewer: Viewer,
  { confirmed, hasCredentials, now, shop: { accent, logo, name } }: Known
) {
  const none: ReadonlyArray<Step> = []
  if (confirmed >= enough || !mayAs(viewer.role, "admin")) return none
  const { owner } = viewer
  const keys = yield* KeysRepo.countWorking(db, owner, false, now)
  const endpoints = yield* EndpointsRepo.list(db, owner)
  const step = (text: string, isDone: boolean, path: string, act: string): Step => ({
    ...{ text, isDone, act },
    href: pathOf(viewer, path)
  })
  const steps: ReadonlyArray<Step> = [
    step("Give your checkout a name and a colour", (name ?? accent ?? logo) !== undefined, "/settings", "Settings"),
    step("Create a key for your shop’s server", keys > 0, "/keys/new", "New key"),
    step(
      "Add a webhook endpoint, so that your server is told of payments",
      endpoints.length > 0,
      "/webhooks/new",
      "Add an endpoint"
    ),
    step("Take a first payment", confirmed > 0, "/payments/new", "New payment"),
    step("Set a password or a passkey, so that you get in again", hasCredentials, "/me", "Sign-in")
  ]
  return steps.every(({ isDone }) => isDone) ? none : steps
})

/** What a new account sets up, ticked by facts, each with the page where it is done. */
const FirstSteps = ({ of: steps }: { readonly of: ReadonlyArray<Step> }) =>
  steps.length === 0 ? null : (
    <section aria-labelledby="first-steps">
      <h2 id="first-steps">
        First steps <small class="muted">{`${steps.filter(({ isDone }) => isDone).length} of ${steps.length}`}</small>
      </h2>
      <ol class="first-steps card">
        {steps.map(({ act, href, isDone, text }) => (
          <li key={href} class={isDone ? "muted" : undefined}>
            {isDone ? (
              <>
                <Mark of="tick" /> {text} <span class="visually-hidden">: done</span>
              </>
            ) : (
              <>
                {text}{" "}
                <a class="button primary" href={href}>
                  {act}
                </a>
              </>
            )}
          </li>
        ))}
      </ol>
    </section>
  )

interface WaitingProps {
  readonly of: ReadonlyArray<UncollectedAmount>
  readonly networks: SettingsShape["chains"]
  readonly price: Prices["Type"]["usd"]
}

/** What waits to be collected, where something does; what has no price is left out of its worth. */
const Waiting = ({ networks, of, price }: WaitingProps) => {
  const worths = of.flatMap((row) => worthOfWaiting(networks, price, row) ?? [])
  const worth =
    worths.length === 0
      ? "Worth not known"
      : fiatText(BigDecimal.format(BigDecimal.scale(BigDecimal.sumAll(worths), 2)))
  return of.length === 0 ? null : (
    <Figure name="Waiting to be collected" value={worth}>
      <details>
        <summary>By token</summary>
        <Tokens of={of.map((row) => ({ ...row, decimals: decimalsOn(networks, row, row.currency) }))} />
      </details>
      <p>
        <a href="/guide/collect">How to collect it</a>
      </p>
    </Figure>
  )
}

/** Whether an amount in base units was more likely meant in whole tokens, by its worth in USD. */
const isTiny = (worth: string | undefined): boolean => worth !== undefined && isLess(worth, "0.01")

/** Payments that are shown, and those that are looked at for amounts that were meant in whole tokens. */
const mostNewest = 5
const mostLookedAt = 20
/** Exceptions that are named. */
const mostNamed = 5

interface Attention {
  /** The newest open ones, with the references of their payments; and how many there are. */
  readonly exceptions: ReadonlyArray<PaymentException>
  readonly references: ReadonlyMap<string, string>
  readonly open: number
  /** Of the newest payments, those that are worth nearly nothing: the first one, and how many. */
  readonly tiny: ReadonlyArray<Payment>
  readonly failing: ReadonlyArray<FailingTarget>
  /** Chains that are not read to their head. */
  readonly behind: ReadonlyArray<ChainHealth>
  /** How much of its quota the account has used, where that is nearly all. */
  readonly quota: ReadonlyArray<CloseAccount>
  readonly chains: SettingsShape["chains"]
}

/** What needs a person, by name; nothing where nothing does. */
const Needs = ({ of, viewer }: { readonly of: Attention; readonly viewer: Viewer }) => {
  const { behind, exceptions, failing, open, quota, references, tiny } = of
  const failed = failing.reduce((sum, target) => sum + target.failing, 0)
  const items: ReadonlyArray<ComponentChildren> = [
    ...quota.map(({ level, quota: bytes, stored }) => {
      const refused = level === "full" ? "are" : "will soon be"
      return `New payments ${refused} refused: the account has stored ${bytesText(stored)} of the ${bytesText(bytes)} that it may. Ask the operator for more room.`
    }),
    ...exceptions.map((exception) => (
      <a href={pathOf(viewer, `/exceptions/${exception.id}`)}>
        {exception.payment === undefined ? "Money" : references.get(exception.payment)}:{" "}
        <ExceptionAmount of={exception} chains={of.chains} /> {kindWords[exception.kind]}
      </a>
    )),
    ...(open > exceptions.length
      ? [
          <a
            href={pathOf(viewer, "/exceptions")}
          >{`${countText(open - exceptions.length, mostInBadge)} more exceptions`}</a>
        ]
      : []),
    ...tiny.slice(0, 1).map(({ currency, id, token }) => (
      <>
        <a href={pathOf(viewer, `/payments/${id}`)}>
          {tiny.length} of the newest payments {tiny.length === 1 ? "is" : "are"} worth less than 0.01 USD
        </a>
        : {wholeTokens(currency, token?.decimals ?? decimalsOf[currency])}. A minimum on the page Settings refuses such.
      </>
    )),
    ...(failed === 0
      ? []
      : [
          <>
            <a href={pathOf(viewer, "/deliveries?status=failing")}>
              {failed === 1 ? "1 webhook delivery is failing" : `${failed} webhook deliveries are failing`}
            </a>{" "}
            at {failing.map(({ url }) => url).join(", ")}
          </>
        ]),
    ...behind.map(({ chain, lagBlocks, reason }) => (
      <>
        <a href={pathOf(viewer, mayAs(viewer.role, "operator") ? "/health" : `/payments?chain=${chain}`)}>
          {chainTraits[chain].displayName} is behind
        </a>
        {lagBlocks === undefined ? "" : ` by ${lagBlocks} blocks`}: its payments are seen late.
        {mayAs(viewer.role, "operator") && reason !== undefined ? ` ${reason}` : ""}
      </>
    ))
  ]
  return items.length === 0 ? null : (
    <section aria-labelledby="needs">
      <h2 id="needs">Needs your attention</h2>
      <ul class="needs card">
        {items.map((item, index) => (
          <li key={index}>{item}</li>
        ))}
      </ul>
    </section>
  )
}

/** For a person who came by a link, without another way to sign in or to prove who they are. */
const LinkOnly = ({ viewer }: { readonly viewer: Viewer }) => (
  <Notice tone="warning">
    <p>
      You have neither a password nor a passkey: <a href={pathOf(viewer, "/me")}>set one now</a>. Without one you need a
      new link to sign in again, and half an hour from now for what can do most harm.
    </p>
  </Notice>
)

const home = Effect.fnUntraced(function* (viewer: Viewer) {
  const { owner } = viewer
  const isAdmin = mayAs(viewer.role, "admin")
  const reader = yield* Reader
  const { accounts, chains } = yield* Settings
  const prices = yield* Prices
  const now = yield* Clock.currentTimeMillis
  const health = (yield* Effect.flatMap(Chains, (all) => all.health)).filter(({ mode }) => mode === owner.mode)
  const shop = yield* shopOf(reader, owner.account)
  const recent = yield* (yield* Payments).list(owner, { limit: mostLookedAt })
  const exceptions = yield* listExceptions(reader, owner, { isOpen: true, limit: mostNamed })
  const open = viewer.badges["/exceptions"]
  const attention: Attention = {
    tiny: recent.flatMap(({ payment }) => (!shop.minimumUsd && isTiny(payment.usdValue) ? [payment] : [])),
    ...{ chains, exceptions, open },
    references: yield* references(
      reader,
      exceptions.flatMap(({ payment }) => payment ?? [])
    ),
    failing: yield* failingTargets(reader, owner, 1_000),
    behind: health.filter(({ ready }) => !ready),
    quota: closeAccounts([yield* UsageRepo.of(reader, owner.account, accounts.quotaBytes)])
  }
  const hasCredentials =
    (yield* PasswordsRepo.ofPerson(reader, viewer.person)) !== undefined ||
    (yield* PasskeysRepo.list(reader, viewer.person)).length > 0
  const { currency = "USD", timezone = "UTC" } = shop
  const overview = yield* overviewOf(reader, { owner, networks: chains, timezone, now })
  const { all, daysBefore, today, yesterdayByNow } = overview
  const steps = yield* stepsOf(reader, viewer, { now, shop, hasCredentials, confirmed: all.fates.confirmed })
  const waits = (yield* Uncollected)
    .waiting()
    .filter(({ account, mode }) => account === owner.account && mode === owner.mode)
  const newest = recent.slice(0, mostNewest)
  const action = isAdmin ? { href: pathOf(viewer, "/payments/new"), text: "New payment" } : undefined
  return framedReply(
    viewer,
    { section: "", title: "Home", isLive: true, action },
    <>
      {hasCredentials ? null : <LinkOnly viewer={viewer} />}
      <Needs of={attention} viewer={viewer} />
      <div class="figures">
        <IncomeFigure
          {...{ name: "Today", currency, of: today.income, before: yesterdayByNow }}
          than="yesterday by this time"
        />
        <IncomeFigure
          {...{ name: `${shownDays} days`, currency, of: all.income, before: daysBefore }}
          than={`the ${shownDays} before`}
        />
        {isAdmin ? <Waiting of={waits} networks={chains} price={prices.usd} /> : null}
        <Figure name="To resolve" value={<a href={pathOf(viewer, "/exceptions")}>{countText(open, mostInBadge)}</a>}>
          <p class="muted">{open === 1 ? "exception" : "exceptions"}</p>
        </Figure>
      </div>
      <Cut since={overview.since} />
      <FirstSteps of={steps} />
      {newest.length === 0 ? null : (
        <>
          <h2>Newest payments</h2>
          <Table
            caption="Newest payments"
            columns={paymentColumns}
            rows={newest}
            keyOf={({ payment }) => payment.id}
            hrefOf={({ payment }) => pathOf(viewer, `/payments/${payment.id}`)}
            empty=""
          />
        </>
      )}
      <Charts overview={overview} currency={currency} timezone={timezone} />
      <p class="hint">
        Income is that of the <a href={pathOf(viewer, "/ledger")}>ledger</a>, by the day in {timezone}.{" "}
        {isAdmin ? <a href={pathOf(viewer, "/settings")}>Change time zone or currency</a> : null}
      </p>
    </>
  )
})

export const homeRoutes: ReadonlyArray<PortalRoute<Chains | Payments | Prices | Reader | Settings | Uncollected>> = [
  pageRoute("", "viewer", home)
]
