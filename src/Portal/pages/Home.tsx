/** The home page: what needs a person first, the first steps of a new account, then what came in. */
import { BigDecimal, Clock, Effect } from "effect"
import type { ComponentChildren } from "preact"
import * as KeysRepo from "../../Auth/KeysRepo.ts"
import * as PasskeysRepo from "../../Auth/PasskeysRepo.ts"
import * as PasswordsRepo from "../../Auth/PasswordsRepo.ts"
import { type CloseAccount, closeAccounts } from "../../Auth/quotaLevel.ts"
import { shopOf } from "../../Auth/ShopsRepo.ts"
import * as UsageRepo from "../../Auth/UsageRepo.ts"
import { type ChainHealth, Chains } from "../../Chains.ts"
import { chainTraits } from "../../Domain/Chain.ts"
import { decimalsOf, decimalsOn, wholeTokens } from "../../Domain/Currency.ts"
import type { Payment } from "../../Domain/Payment.ts"
import type { Shop } from "../../Domain/Shop.ts"
import { bytesText } from "../../lib/quantities.ts"
import { Mark } from "../../Pages/marks.tsx"
import { Uncollected, type UncollectedAmount, worthOfWaiting } from "../../Payments/addresses/Uncollected.ts"
import { countOpen } from "../../Payments/ExceptionListRepo.ts"
import { Payments } from "../../Payments.ts"
import { Prices } from "../../Quotes/Prices.ts"
import { Settings, type SettingsShape } from "../../Settings.ts"
import { type Db, Reader } from "../../Sql.ts"
import { countSince, type FailingTarget, failingTargets } from "../../Webhooks/queue/DeliveryLogRepo.ts"
import * as EndpointsRepo from "../../Webhooks/queue/EndpointsRepo.ts"
import { Table } from "../components/Table.tsx"
import { Chain, fiatText, isTiny, Money, Notice } from "../components/values.tsx"
import { framedReply } from "../framedReply.tsx"
import { type PortalRoute, pathOf } from "../route.ts"
import { mayAs, type Viewer } from "../Viewer.ts"
import { overviewOf, shownDays } from "./overview.ts"
import { paymentColumns } from "./Payments.tsx"
import { Charts, Cut, Sums } from "./sums.tsx"

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
  const isTest = owner.mode === "test"
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
    isTest
      ? step("Pay a first payment on a local chain", confirmed > 0, "/simulate", "Simulate")
      : step("Take a first payment", confirmed > 0, "/payments/new", "New payment"),
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

interface WaitingTableProps {
  readonly of: ReadonlyArray<UncollectedAmount>
  readonly networks: SettingsShape["chains"]
  readonly price: Prices["Type"]["usd"]
}

/** What waits to be collected, by chain and currency. */
const WaitingTable = ({ networks, of, price }: WaitingTableProps) =>
  of.length === 0 ? null : (
    <>
      <h2>Waiting to be collected</h2>
      <Table
        caption="What was received, and not collected yet"
        empty=""
        rows={[...of].sort((a, b) => (a.chain + a.currency < b.chain + b.currency ? -1 : 1))}
        keyOf={({ chain, currency }) => `${chain} ${currency}`}
        columns={[
          { name: "Chain", cell: ({ chain }) => <Chain of={chain} /> },
          {
            name: "Amount",
            numeric: true,
            cell: (row) => (
              <Money amount={row.amount} currency={row.currency} decimals={decimalsOn(networks, row, row.currency)} />
            )
          },
          {
            name: "Worth",
            numeric: true,
            cell: (row) => {
              const worth = worthOfWaiting(networks, price, row)
              return worth === undefined ? "–" : fiatText(BigDecimal.format(BigDecimal.scale(worth, 2)))
            }
          }
        ]}
      />
      <p class="hint">
        Counted once an hour, from what tilld has seen. <a href="/guide/collect">How to collect it</a>
      </p>
    </>
  )

/** Above that, "more than" is said. */
const mostExceptions = 100
const mostDeliveries = 100_000
/** Payments that are shown, and those that are looked at for amounts that were meant in whole tokens. */
const mostNewest = 5
const mostLookedAt = 20

interface Attention {
  readonly exceptions: number
  /** Of the newest payments, those that are worth nearly nothing: the first one, and how many. */
  readonly tiny: ReadonlyArray<Payment>
  readonly failing: ReadonlyArray<FailingTarget>
  /** Those that are not read to their head. */
  readonly behind: ReadonlyArray<ChainHealth>
  /** How many chains the mode has. */
  readonly watched: number
  /** How much of its quota the account has used, where that is nearly all. */
  readonly quota: ReadonlyArray<CloseAccount>
}

const Needs = ({
  of: { behind, exceptions, failing, quota, tiny, watched },
  viewer
}: {
  readonly of: Attention
  readonly viewer: Viewer
}) => {
  const items: ReadonlyArray<ComponentChildren> = [
    ...quota.map(({ level, quota: bytes, stored }) => {
      const refused = level === "full" ? "are" : "will soon be"
      return `New payments ${refused} refused: the account has stored ${bytesText(stored)} of the ${bytesText(bytes)} that it may. Ask the operator for more room.`
    }),
    ...(exceptions === 0
      ? []
      : [
          <a href={pathOf(viewer, "/exceptions")}>
            {exceptions >= mostExceptions ? `${mostExceptions} or more` : exceptions} open{" "}
            {exceptions === 1 ? "exception" : "exceptions"}
          </a>
        ]),
    ...tiny.slice(0, 1).map(({ currency, id, token }) => (
      <>
        <a href={pathOf(viewer, `/payments/${id}`)}>
          {tiny.length} of the newest payments {tiny.length === 1 ? "is" : "are"} worth less than 0.01 USD
        </a>
        : {wholeTokens(currency, token?.decimals ?? decimalsOf[currency])}. A minimum on the page Settings refuses such.
      </>
    )),
    ...failing.map(({ endpoint, failing: count, url }) => (
      <>
        <a href={pathOf(viewer, `/deliveries?status=failing${endpoint === null ? "" : `&endpoint=${endpoint}`}`)}>
          {count} failing {count === 1 ? "delivery" : "deliveries"}
        </a>{" "}
        to {endpoint === null ? "payments’ own webhookUrls, such as " : ""}
        <code>{url}</code>
      </>
    )),
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
  return (
    <section aria-labelledby="needs">
      <h2 id="needs">Needs your attention</h2>
      {items.length === 0 ? (
        <Notice tone="good">
          Nothing: no open exception, no failing endpoint, and{" "}
          {watched === 0 ? `no chain is configured in ${viewer.owner.mode} mode` : "every chain is read"}.
        </Notice>
      ) : (
        <ul class="needs card">
          {items.map((item, index) => (
            <li key={index}>{item}</li>
          ))}
        </ul>
      )}
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
  const reader = yield* Reader
  const { accounts, chains } = yield* Settings
  const prices = yield* Prices
  const now = yield* Clock.currentTimeMillis
  const health = (yield* Effect.flatMap(Chains, (all) => all.health)).filter(({ mode }) => mode === owner.mode)
  const shop = yield* shopOf(reader, owner.account)
  const recent = yield* (yield* Payments).list(owner, { limit: mostLookedAt })
  const attention: Attention = {
    tiny: recent.flatMap(({ payment }) => (!shop.minimumUsd && isTiny(payment.usdValue) ? [payment] : [])),
    exceptions: yield* countOpen(reader, owner, mostExceptions),
    failing: yield* failingTargets(reader, owner, 1_000),
    behind: health.filter(({ ready }) => !ready),
    watched: health.length,
    quota: closeAccounts([yield* UsageRepo.of(reader, owner.account, accounts.quotaBytes)])
  }
  const hasCredentials =
    (yield* PasswordsRepo.ofPerson(reader, viewer.person)) !== undefined ||
    (yield* PasskeysRepo.list(reader, viewer.person)).length > 0
  const { currency = "USD", timezone = "UTC" } = shop
  const overview = yield* overviewOf(reader, { owner, networks: chains, timezone, now })
  const deliveriesSince = (since: number) =>
    Effect.all(
      {
        delivered: countSince(reader, owner, "delivered", since, mostDeliveries),
        failing: countSince(reader, owner, "failing", since, mostDeliveries)
      },
      { concurrency: 1 }
    )
  const { all, today, yesterdayByNow } = overview
  const steps = yield* stepsOf(reader, viewer, { now, shop, hasCredentials, confirmed: all.fates.confirmed })
  const waits = (yield* Uncollected)
    .waiting()
    .filter(({ account, mode }) => account === owner.account && mode === owner.mode)
  const newest = recent.slice(0, mostNewest)
  return framedReply(
    viewer,
    { section: "", title: "Home", isLive: true },
    <>
      {hasCredentials ? null : <LinkOnly viewer={viewer} />}
      <Needs of={attention} viewer={viewer} />
      <FirstSteps of={steps} />
      <h2>Income</h2>
      <p class="muted">
        By the day in {timezone} when money came or went back, as the <a href={pathOf(viewer, "/ledger")}>ledger</a> has
        it.{" "}
        {mayAs(viewer.role, "admin") ? <a href={pathOf(viewer, "/settings")}>Change time zone or currency</a> : null}
      </p>
      <Cut since={overview.since} />
      <Sums
        viewer={viewer}
        currency={currency}
        periods={[
          { name: "Today", day: today, before: yesterdayByNow, deliveries: yield* deliveriesSince(today.at) },
          { name: `${shownDays} days`, day: all, deliveries: yield* deliveriesSince(all.at) }
        ]}
      />
      <Charts overview={overview} currency={currency} timezone={timezone} />
      {mayAs(viewer.role, "admin") ? <WaitingTable of={waits} networks={chains} price={prices.usd} /> : null}
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
    </>
  )
})

export const homeRoutes: ReadonlyArray<PortalRoute<Chains | Payments | Prices | Reader | Settings | Uncollected>> = [
  { method: "GET", path: "", role: "viewer", handle: home }
]
