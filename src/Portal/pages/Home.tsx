/** The home page: what needs a person first, the first steps of a new account, then what came in. */
import { Clock, Effect } from "effect"
import type { ComponentChildren } from "preact"
import * as PasskeysRepo from "../../Auth/PasskeysRepo.ts"
import * as PasswordsRepo from "../../Auth/PasswordsRepo.ts"
import { type CloseAccount, closeAccounts } from "../../Auth/quotaLevel.ts"
import { shopOf } from "../../Auth/ShopsRepo.ts"
import * as UsageRepo from "../../Auth/UsageRepo.ts"
import { type ChainHealth, Chains } from "../../Chains.ts"
import { bytesText } from "../../Domain/byteSize.ts"
import { chainTraits } from "../../Domain/Chain.ts"
import { Uncollected } from "../../Payments/addresses/Uncollected.ts"
import { countOpen } from "../../Payments/ExceptionListRepo.ts"
import { Payments } from "../../Payments.ts"
import { Prices } from "../../Quotes/Prices.ts"
import { Settings } from "../../Settings.ts"
import { Reader } from "../../Sql.ts"
import { countSince, type FailingTarget, failingTargets } from "../../Webhooks/queue/DeliveryLogRepo.ts"
import { Table } from "../components/Table.tsx"
import { Notice, Time } from "../components/values.tsx"
import { framedReply } from "../framedReply.tsx"
import { type PortalRoute, pathOf } from "../route.ts"
import { mayAs, type Viewer } from "../Viewer.ts"
import { FirstSteps, stepsOf } from "./firstSteps.tsx"
import { type Overview, overviewOf, shownDays, together } from "./overview.ts"
import { paymentColumns } from "./Payments.tsx"
import { Charts, Sums, worthIn } from "./sums.tsx"
import { WaitingTable } from "./WaitingTable.tsx"
import { WaysIn, waysIn } from "./waysIn.tsx"

/** Above that, "more than" is said. */
const mostExceptions = 100
const mostDeliveries = 100_000
/** Payments that are shown. */
const mostNewest = 5

interface Attention {
  readonly exceptions: number
  readonly failing: ReadonlyArray<FailingTarget>
  /** Those that are not read to their head. */
  readonly behind: ReadonlyArray<ChainHealth>
  /** How many chains the mode has. */
  readonly watched: number
  /** How much of its quota the account has used, where that is nearly all. */
  readonly quota: ReadonlyArray<CloseAccount>
}

const Needs = ({
  of: { behind, exceptions, failing, quota, watched },
  viewer
}: {
  readonly of: Attention
  readonly viewer: Viewer
}) => {
  const items: ReadonlyArray<ComponentChildren> = [
    ...quota.map(({ level, quota: bytes, stored }) =>
      level === "full"
        ? `New payments are refused: the account has stored ${bytesText(stored)} of the ${bytesText(bytes)} that it may. Ask the operator for more room.`
        : `New payments will soon be refused: the account has stored ${bytesText(stored)} of the ${bytesText(bytes)} that it may. Ask the operator for more room.`
    ),
    ...(exceptions === 0
      ? []
      : [
          <a href={pathOf(viewer, "/exceptions")}>
            {exceptions >= mostExceptions ? `${mostExceptions} or more` : exceptions} open{" "}
            {exceptions === 1 ? "exception" : "exceptions"}
          </a>
        ]),
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

const Cut = ({ of: { since } }: { readonly of: Overview }) =>
  since === undefined ? null : (
    <p class="muted">
      Only the newest payments are counted here, those since <Time at={since} />.
    </p>
  )

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
  const attention: Attention = {
    exceptions: yield* countOpen(reader, owner, mostExceptions),
    failing: yield* failingTargets(reader, owner, 1_000),
    behind: health.filter(({ ready }) => !ready),
    watched: health.length,
    quota: closeAccounts([yield* UsageRepo.of(reader, owner.account, accounts.quotaBytes)])
  }
  const hasCredentials =
    (yield* PasswordsRepo.ofPerson(reader, viewer.person)) !== undefined ||
    (yield* PasskeysRepo.list(reader, viewer.person)).length > 0
  const ways = yield* waysIn(reader, viewer, now)
  const shop = yield* shopOf(reader, owner.account)
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
  const [first] = overview.days
  const today = overview.days.slice(-1)
  const all = together(overview.days)
  const steps = yield* stepsOf(reader, viewer, { now, shop, hasCredentials, confirmed: all.fates.confirmed })
  const worth = worthIn(currency, prices.usd(currency))
  const waits = (yield* Uncollected)
    .waiting()
    .filter(({ account, mode }) => account === owner.account && mode === owner.mode)
  const newest = yield* (yield* Payments).list(owner, { limit: mostNewest })
  return framedReply(
    viewer,
    { section: "", title: "Home", isLive: true },
    <>
      {hasCredentials ? null : <LinkOnly viewer={viewer} />}
      <Needs of={attention} viewer={viewer} />
      <FirstSteps of={steps} />
      <h2>Income</h2>
      <p class="muted">
        By the day of payment in {timezone}.{" "}
        {mayAs(viewer.role, "admin") ? <a href={pathOf(viewer, "/settings")}>Change time zone or currency</a> : null}
      </p>
      <Cut of={overview} />
      <Sums
        viewer={viewer}
        worth={worth}
        periods={[
          {
            name: "Today",
            day: together(today),
            before: overview.yesterdayByNow,
            deliveries: yield* deliveriesSince(today[0]?.at ?? now)
          },
          { name: `${shownDays} days`, day: all, deliveries: yield* deliveriesSince(first?.at ?? now) }
        ]}
      />
      <Charts days={overview.days} worth={worth} timezone={timezone} />
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
      <WaysIn of={ways} viewer={viewer} />
    </>
  )
})

export const homeRoutes: ReadonlyArray<PortalRoute<Chains | Payments | Prices | Reader | Settings | Uncollected>> = [
  { method: "GET", path: "", role: "viewer", handle: home }
]
