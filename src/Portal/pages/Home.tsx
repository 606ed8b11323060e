/** The home page: what needs a person first, then today and the last 30 days. */
import { Clock, Effect } from "effect"
import type { ComponentChildren } from "preact"
import * as PasskeysRepo from "../../Auth/PasskeysRepo.ts"
import * as PasswordsRepo from "../../Auth/PasswordsRepo.ts"
import { type CloseAccount, closeAccounts } from "../../Auth/quotaLevel.ts"
import * as UsageRepo from "../../Auth/UsageRepo.ts"
import { type ChainHealth, Chains } from "../../Chains.ts"
import { bytesText } from "../../Domain/byteSize.ts"
import { countOpen } from "../../Payments/ExceptionListRepo.ts"
import { Settings } from "../../Settings.ts"
import { Reader } from "../../Sql.ts"
import { countSince, type FailingTarget, failingTargets } from "../../Webhooks/queue/DeliveryLogRepo.ts"
import { Area, StackedBars } from "../components/chart.tsx"
import { Table } from "../components/Table.tsx"
import { Money, Notice, Time } from "../components/values.tsx"
import { framedReply } from "../framedReply.tsx"
import { type PortalRoute, pathOf } from "../route.ts"
import { mayAs, type Viewer } from "../Viewer.ts"
import {
  type Day,
  dayOf,
  dayText,
  durationText,
  median,
  type Overview,
  outcomes,
  overviewOf,
  shownDays,
  together
} from "./overview.ts"
import { WaysIn, waysIn } from "./waysIn.tsx"

/** Above that, "more than" is said. */
const mostExceptions = 100
const mostDeliveries = 100_000

interface Attention {
  readonly exceptions: number
  readonly failing: ReadonlyArray<FailingTarget>
  readonly chains: ReadonlyArray<ChainHealth>
  /** How much of its quota the account has used, where that is nearly all. */
  readonly quota: ReadonlyArray<CloseAccount>
}

const Needs = ({
  of: { chains, exceptions, failing, quota },
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
        to {endpoint === null ? "payments' own webhookUrls, such as " : ""}
        <code>{url}</code>
      </>
    )),
    ...chains.map(({ chain, lagBlocks, reason }) => (
      <>
        <a href={pathOf(viewer, mayAs(viewer.role, "operator") ? "/health" : `/payments?chain=${chain}`)}>
          {chain} is behind
        </a>
        {lagBlocks === undefined ? "" : ` by ${lagBlocks} blocks`}: its payments are seen late.
        {mayAs(viewer.role, "operator") && reason !== undefined ? ` ${reason}` : ""}
      </>
    ))
  ]
  return (
    <section aria-labelledby="needs">
      <h2 id="needs">Needs a person</h2>
      {items.length === 0 ? (
        <Notice tone="good">Nothing: no open exception, no failing endpoint, and every chain is read.</Notice>
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

interface Deliveries {
  readonly delivered: number
  /** Tried, and not arrived: those that are tried again are among them. */
  readonly failing: number
}

const share = ({ delivered, failing }: Deliveries): string => {
  const all = delivered + failing
  // Rounded down: 100 % is said only where none is failing.
  return all === 0 ? "none yet" : `${Math.floor((1000 * delivered) / all) / 10} % of ${all}`
}

/** The volumes of a day in an order that does not change with the payments. */
const sorted = ({ volumes }: Day) => [...volumes].sort(([a], [b]) => (a < b ? -1 : 1))

const Period = ({
  day,
  deliveries,
  name
}: {
  readonly name: string
  readonly day: Day
  readonly deliveries: Deliveries
}) => {
  const middle = median(day.times)
  const counts = outcomes.map((outcome) => `${day.outcomes[outcome]} ${outcome}`).join(", ")
  return (
    <section class="card" aria-label={name}>
      <h3>{name}</h3>
      <div class="volumes">
        {day.volumes.size === 0 ? <p class="big">Nothing confirmed</p> : null}
        {sorted(day).map(([key, { amount, currency, decimals, payments }]) => (
          <p class="big" key={key}>
            <Money amount={amount} currency={currency} decimals={decimals} />{" "}
            <small class="muted">
              in {payments} {payments === 1 ? "payment" : "payments"}
            </small>
          </p>
        ))}
      </div>
      <dl class="facts">
        <div>
          <dt>Payments</dt>
          <dd>{counts}</dd>
        </div>
        <div>
          <dt>Median time to confirmed</dt>
          <dd>{middle === undefined ? "none yet" : durationText(middle)}</dd>
        </div>
        <div>
          <dt>Deliveries that have arrived, of those tried</dt>
          <dd>{share(deliveries)}</dd>
        </div>
      </dl>
    </section>
  )
}

const usd = (value: number): string =>
  `$${value.toLocaleString("en-US", { maximumFractionDigits: value < 100 ? 2 : 0 })}`

/** The same for an axis: `$1.2K`. */
const shortUsd = (value: number): string =>
  `$${value.toLocaleString("en-US", { notation: "compact", maximumFractionDigits: 1 })}`

const Charts = ({ days }: { readonly days: ReadonlyArray<Day> }) => {
  const names = days.map(({ at }) => dayText(at).slice(5))
  const sum = together(days)
  const hasUsd = sum.usd > 0
  const volumes = (day: Day) =>
    sorted(day).map(([key, { amount, currency, decimals }]) => (
      <div key={key}>
        <Money amount={amount} currency={currency} decimals={decimals} />
      </div>
    ))
  const newestFirst = [...days].reverse()
  const dayColumn = { name: "Day (UTC)", cell: ({ at }: Day) => <time dateTime={dayText(at)}>{dayText(at)}</time> }
  return (
    <div class="cards">
      <StackedBars
        title="Payments by outcome"
        summary={`Payments a day of the last ${shownDays} days: ${outcomes.map((one) => `${sum.outcomes[one]} ${one}`).join(", ")} in all.`}
        days={names}
        keys={outcomes}
        values={days.map((day) => day.outcomes)}
        table={
          <Table
            caption="Payments by the day they were created, and what became of them"
            empty=""
            rows={newestFirst}
            keyOf={({ at }) => String(at)}
            columns={[
              dayColumn,
              ...outcomes.map((outcome) => ({
                name: outcome,
                numeric: true,
                cell: (day: Day) => day.outcomes[outcome]
              }))
            ]}
          />
        }
      />
      <Area
        title={hasUsd ? "Asked for by confirmed payments, in US dollars" : "Confirmed payments"}
        summary={
          hasUsd
            ? `${usd(sum.usd)} were confirmed in ${shownDays} days.`
            : `${sum.outcomes.confirmed} payments were confirmed in ${shownDays} days.`
        }
        days={names}
        values={days.map((day) => (hasUsd ? day.usd : day.outcomes.confirmed))}
        format={hasUsd ? shortUsd : (value) => (Number.isInteger(value) ? String(value) : "")}
        table={
          <Table
            caption={`What was confirmed, by currency${hasUsd ? "; dollars by the prices when the payments were created" : ""}`}
            empty=""
            rows={newestFirst}
            keyOf={({ at }) => String(at)}
            columns={[
              dayColumn,
              { name: "Volume", numeric: true, cell: volumes },
              ...(hasUsd ? [{ name: "US dollars", numeric: true, cell: (day: Day) => usd(day.usd) }] : [])
            ]}
          />
        }
      />
    </div>
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
      new link to sign in again, and five minutes from now for what can do most harm.
    </p>
  </Notice>
)

const home = Effect.fnUntraced(function* (viewer: Viewer) {
  const { owner } = viewer
  const reader = yield* Reader
  const { accounts, chains } = yield* Settings
  const now = yield* Clock.currentTimeMillis
  const health = yield* Effect.flatMap(Chains, (all) => all.health)
  const attention: Attention = {
    exceptions: yield* countOpen(reader, owner, mostExceptions),
    failing: yield* failingTargets(reader, owner, 1_000),
    chains: health.filter(({ mode, ready }) => mode === owner.mode && !ready),
    quota: closeAccounts([yield* UsageRepo.of(reader, owner.account, accounts.quotaBytes)])
  }
  const hasCredentials =
    (yield* PasswordsRepo.ofPerson(reader, viewer.person)) !== undefined ||
    (yield* PasskeysRepo.list(reader, viewer.person)).length > 0
  const ways = yield* waysIn(reader, viewer, now)
  const overview = yield* overviewOf(reader, owner, chains, now)
  const deliveriesSince = (since: number) =>
    Effect.all(
      {
        delivered: countSince(reader, owner, "delivered", since, mostDeliveries),
        failing: countSince(reader, owner, "failing", since, mostDeliveries)
      },
      { concurrency: 1 }
    )
  const today = overview.days.slice(-1)
  return framedReply(
    viewer,
    { section: "", title: "Home" },
    <>
      {hasCredentials ? null : <LinkOnly viewer={viewer} />}
      <Needs of={attention} viewer={viewer} />
      <WaysIn of={ways} viewer={viewer} />
      <h2>Today and the last {shownDays} days</h2>
      <Cut of={overview} />
      <div class="cards">
        <Period name="Today (UTC)" day={together(today)} deliveries={yield* deliveriesSince(dayOf(now))} />
        <Period
          name={`${shownDays} days`}
          day={together(overview.days)}
          deliveries={yield* deliveriesSince(overview.days[0]?.at ?? 0)}
        />
      </div>
      <Charts days={overview.days} />
    </>
  )
})

export const homeRoutes: ReadonlyArray<PortalRoute<Chains | Reader | Settings>> = [
  { method: "GET", path: "", role: "viewer", handle: home }
]
