/** Webhook deliveries: the list, one with its attempts, and sending them again: one, several, or all of a range. */

import { Clock, Effect, Either } from "effect"
import type { Accounts } from "../../Auth.ts"
import { DeliveryStatus } from "../../Domain/DeliveryObject.ts"
import type { Endpoint } from "../../Domain/Webhook.ts"
import { bodyOf } from "../../Events/EventsRepo.ts"
import { makeCursors } from "../../Http/cursor.ts"
import { iso } from "../../lib/moment.ts"
import { carryOut } from "../../Operations/auditLog.ts"
import { seeOther } from "../../Pages/reply.tsx"
import { Secrets } from "../../Secrets.ts"
import type { Settings } from "../../Settings.ts"
import { Reader, type Writer } from "../../Sql.ts"
import { redeliverOne, redeliverRange } from "../../Webhooks/deliveryOperations.ts"
import type { DeliveryBell } from "../../Webhooks/queue/DeliveryBell.ts"
import * as LogRepo from "../../Webhooks/queue/DeliveryLogRepo.ts"
import * as EndpointsRepo from "../../Webhooks/queue/EndpointsRepo.ts"
import { blank, type FormState } from "../components/Form.tsx"
import { Notice } from "../components/values.tsx"
import { checked, readMoment, textOf } from "../fields.ts"
import { framedReply, missing } from "../framedReply.tsx"
import { listed } from "../listed.tsx"
import { withQuery } from "../query.ts"
import { formRoute, type PortalHandler, type PortalRoute, pathOf } from "../route.ts"
import { callerOf, mayAs, type Viewer } from "../Viewer.ts"
import {
  DeliveryFilters,
  DeliveryList,
  FailingTargets,
  filterFields,
  OneDelivery,
  type Progress,
  ProgressView,
  RangeForm,
  type ReadFilters,
  readFilters,
  selectionOf
} from "./DeliveryViews.tsx"

type Needs = Accounts | DeliveryBell | Reader | Secrets | Settings | Writer

/** Of so many failing deliveries it is said where they go. */
const mostFailing = 1_000

const list: PortalHandler<Needs> = (viewer, { query }) =>
  Effect.gen(function* () {
    const reader = yield* Reader
    const endpoints = yield* EndpointsRepo.list(reader, viewer.owner)
    const read = readFilters(query)
    const problems = Either.isLeft(read) ? read.left : []
    const chosen: ReadFilters = Either.getOrElse(read, () => ({ status: undefined, from: undefined, until: undefined }))
    const fields = filterFields(query)
    const selections = (chosen.status === undefined ? DeliveryStatus.literals : [chosen.status]).map((status) =>
      selectionOf(viewer, query, chosen, status)
    )
    const page = yield* listed(viewer, {
      ...{ path: "/deliveries", query, filters: fields },
      placeOf: (delivery: LogRepo.LoggedDelivery) => delivery,
      read: (before, limit) =>
        problems.length > 0 ? Effect.succeed([]) : LogRepo.list(reader, selections, limit, before)
    })
    const targets = page.isFirst ? yield* LogRepo.failingTargets(reader, viewer.owner, mostFailing) : []
    return framedReply(
      viewer,
      { section: "/deliveries", title: "Deliveries", isLive: page.isFirst },
      <>
        <Outcome of={query} />
        <FailingTargets viewer={viewer} of={targets} found={page.rows ?? []} />
        <DeliveryFilters viewer={viewer} endpoints={endpoints} of={{ id: "filters", typed: query, problems }} />
        {page.rows === undefined ? null : (
          <DeliveryList
            viewer={viewer}
            id="all"
            caption="Deliveries, newest first"
            deliveries={page.rows}
            empty="No delivery. Each event makes one for every endpoint that takes it, and for a payment’s webhookUrl."
          />
        )}
        {page.paging}
        {mayAs(viewer.role, "admin") ? (
          <p>
            <a href={pathOf(viewer, "/deliveries/resend-range")}>Send a range again</a>
          </p>
        ) : null}
      </>,
      problems.length > 0 ? 422 : page.rows === undefined ? 400 : 200
    )
  })

const outcomes = ["ordered", "due", "refused"] as const

const outcomeTexts: Readonly<Record<(typeof outcomes)[number], string>> = {
  ordered: "sent again: the answer shows here in a moment",
  due: "about to be sent already",
  refused: "not possible: the endpoint was deleted, or takes no such events. Choose another endpoint to send to"
}

/** What came of sending deliveries again: counts in the address, after a redirect. */
const Outcome = ({ of }: { readonly of: URLSearchParams }) => {
  const counts = outcomes.flatMap((name) => {
    const count = of.get(name) ?? ""
    return /^[1-9]\d{0,5}$/.test(count) ? [`${count} ${outcomeTexts[name]}`] : []
  })
  if (counts.length === 0) return null
  return (
    <Notice tone={of.has("refused") ? "warning" : "good"} isAnswer>
      {counts.map((text) => (
        <p key={text}>{text}.</p>
      ))}
    </Notice>
  )
}

const one: PortalHandler<Needs> = (viewer, { params, query }) =>
  Effect.gen(function* () {
    const reader = yield* Reader
    const delivery = yield* LogRepo.ofOwner(reader, viewer.owner, params.id ?? "")
    if (delivery === undefined) return missing(viewer, "/deliveries", "delivery")
    const body = yield* bodyOf(reader, viewer.owner, delivery.event)
    const endpoints = yield* EndpointsRepo.list(reader, viewer.owner)
    return framedReply(
      viewer,
      { section: "/deliveries", title: `Delivery of ${delivery.kind}`, isLive: true },
      <>
        <Outcome of={query} />
        <OneDelivery viewer={viewer} of={delivery} body={body} endpoints={endpoints} />
      </>
    )
  })

/** Most deliveries that one form sends again: as many as a page can have. */
const mostChosen = 100
/** Pages of a range that one request orders again, 500 deliveries each: it ends soon, and shows how far it is. */
const pagesAtOnce = 2

const overQuota = (viewer: Viewer) =>
  framedReply(
    viewer,
    { section: "/deliveries", title: "No room for more" },
    <p>The account has stored as much as it may: ask the operator for more room.</p>,
    507
  )

/** The endpoint that the field `to` names; undefined for none. Left: it is not one of this account and mode. */
const targetIn = Effect.fnUntraced(function* (viewer: Viewer, form: URLSearchParams) {
  const to = textOf(form, "to")
  if (to === "") return Either.right(undefined)
  const endpoint = yield* EndpointsRepo.find(yield* Reader, viewer.owner, to)
  return endpoint === undefined ? Either.left("must be one of the endpoints") : Either.right(endpoint)
})

const refusals = (viewer: Viewer) => ({
  QuotaExceeded: () => Effect.succeed(overQuota(viewer)),
  // It was deleted while the order was given: nothing was ordered.
  NotFound: () => Effect.succeed(missing(viewer, "/deliveries", "delivery or endpoint"))
})

/** Orders one delivery of the viewer's again. */
const order = (viewer: Viewer, id: string, to: Endpoint | undefined) =>
  carryOut(redeliverOne, { id, ...(to === undefined ? {} : { to: to.id }) }, callerOf(viewer)).pipe(
    Effect.catchTag("RedeliveryRefused", () => Effect.succeed({ id, result: "refused" as const }))
  )

const resendOne: PortalHandler<Needs> = (viewer, { form, params: { id = "" } }) =>
  Effect.gen(function* () {
    const target = yield* targetIn(viewer, form)
    const found = yield* LogRepo.ofOwner(yield* Reader, viewer.owner, id)
    if (found === undefined || Either.isLeft(target)) return missing(viewer, "/deliveries", "delivery or endpoint")
    const ordered = yield* order(viewer, id, target.right)
    return seeOther(withQuery(pathOf(viewer, `/deliveries/${ordered.id}`), { [ordered.result]: "1" }))
  }).pipe(Effect.catchTags(refusals(viewer)))

const resendChosen: PortalHandler<Needs> = (viewer, { form }) =>
  Effect.gen(function* () {
    const reader = yield* Reader
    const counts = { ordered: 0, due: 0, refused: 0 }
    for (const id of new Set(form.getAll("id").slice(0, mostChosen))) {
      if ((yield* LogRepo.ofOwner(reader, viewer.owner, id)) === undefined) continue
      counts[(yield* order(viewer, id, undefined)).result] += 1
    }
    const query = Object.fromEntries(
      Object.entries(counts).map(([name, count]) => [name, count > 0 ? String(count) : ""])
    )
    return seeOther(withQuery(pathOf(viewer, "/deliveries"), query))
  }).pipe(Effect.catchTags(refusals(viewer)))

const rangePage = (viewer: Viewer, of: FormState, status?: number) =>
  Effect.gen(function* () {
    const endpoints = yield* EndpointsRepo.list(yield* Reader, viewer.owner)
    return framedReply(
      viewer,
      { section: "/deliveries", title: "Send a range again" },
      <RangeForm viewer={viewer} endpoints={endpoints} of={of} />,
      status
    )
  })

const sumIn = (form: URLSearchParams): Progress => {
  const count = (name: string) => (/^\d{1,9}$/.test(textOf(form, name)) ? Number(textOf(form, name)) : 0)
  return { ordered: count("ordered"), due: count("due"), refused: count("refused") }
}

const resendRange: PortalHandler<Needs> = (viewer, { form }) =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const target = yield* targetIn(viewer, form)
    const read = Either.flatMap(checked({ to: target }), ({ to }) =>
      Either.map(readFilters(form), (filters) => ({ to, filters }))
    )
    if (Either.isLeft(read)) return yield* rangePage(viewer, { id: "range", typed: form, problems: read.left }, 422)
    const { filters, to } = read.right
    // Deliveries that this adds, with `to`, are not of the range: it ends where it was begun, in every part.
    const started = Either.getOrElse(readMoment(textOf(form, "started")), () => now)
    const until = Math.min(filters.until ?? Number.POSITIVE_INFINITY, started, now)
    const { status = "failing" } = filters
    const fields = { ...filterFields(form), status, payment: "", to: to?.id ?? "" }
    const name = JSON.stringify(["portal redelivery", fields, started])
    const { endpoint } = selectionOf(viewer, form, filters, status)
    const range = {
      ...viewer.owner,
      ...{ status, since: { at: filters.from ?? 0 }, until: { at: until } },
      ...(endpoint === undefined ? {} : { endpoint }),
      ...(to === undefined ? {} : { to: to.id })
    }
    const sum = { ...sumIn(form) }
    const cursors = makeCursors(yield* Secrets)
    let after = cursors.decode(textOf(form, "cursor"), viewer.owner, name)
    for (let page = 0; page < pagesAtOnce; page++) {
      const part = after === undefined ? range : { ...range, after: { mode: viewer.owner.mode, ...after } }
      const done = yield* carryOut(redeliverRange, part, callerOf(viewer))
      after = "next" in done ? done.next : undefined
      sum.ordered += done.ordered
      sum.due += done.due
      sum.refused += done.refused
      if (after === undefined) break
    }
    const next =
      after === undefined
        ? undefined
        : {
            ...fields,
            cursor: cursors.encode(after, viewer.owner, name),
            started: iso(started),
            ...Object.fromEntries(Object.entries(sum).map(([name, count]) => [name, String(count)]))
          }
    return framedReply(
      viewer,
      { section: "/deliveries", title: next === undefined ? "The range was sent again" : "Sending a range again" },
      <ProgressView viewer={viewer} progress={sum} next={next} />
    )
  }).pipe(
    Effect.catchTags({
      ...refusals(viewer),
      UnknownAccount: () => Effect.succeed(missing(viewer, "/deliveries", "account")),
      RedeliveryRefused: () => Effect.succeed(missing(viewer, "/deliveries", "endpoint"))
    })
  )

export const deliveryRoutes: ReadonlyArray<PortalRoute<Needs>> = [
  { method: "GET", path: "/deliveries", role: "viewer", handle: list },
  { method: "GET", path: "/deliveries/:id", role: "viewer", handle: one },
  {
    method: "GET",
    path: "/deliveries/resend-range",
    role: "admin",
    handle: (viewer) => rangePage(viewer, blank("range", { status: "failing" }))
  },
  formRoute("/deliveries/resend-range", "admin", resendRange),
  formRoute("/deliveries/resend", "admin", resendChosen),
  formRoute("/deliveries/:id/resend", "admin", resendOne)
]
