/** Webhook deliveries: the failing ones first, one with its attempts, and sending one, several or a range again. */
import { Clock, Effect, Either } from "effect"
import { type Act, audited } from "../../Auth/auditLog.ts"
import type { QuotaExceeded } from "../../Domain/AccountErrors.ts"
import type { EndpointId, PaymentId } from "../../Domain/Ids.ts"
import { iso } from "../../Domain/Timestamp.ts"
import { bodyOf } from "../../Events/EventsRepo.ts"
import { makeCursors, type Place } from "../../Http/cursor.ts"
import { seeOther } from "../../Pages/reply.tsx"
import { Secrets } from "../../Secrets.ts"
import type { Settings } from "../../Settings.ts"
import { Reader, type StoreUnavailable, type Writer } from "../../Sql.ts"
import type { DeliveryBell } from "../../Webhooks/queue/DeliveryBell.ts"
import * as LogRepo from "../../Webhooks/queue/DeliveryLogRepo.ts"
import * as EndpointsRepo from "../../Webhooks/queue/EndpointsRepo.ts"
import { redeliver, redeliverPage } from "../../Webhooks/queue/redelivery.ts"
import { missing, shown, withQuery } from "../answers.tsx"
import { blank, type FormState } from "../components/Form.tsx"
import { Paging } from "../components/Table.tsx"
import { Notice } from "../components/values.tsx"
import { checked, optional, readMoment, readOneOf, textOf } from "../fields.ts"
import { type PortalHandler, type PortalRoute, pathOf } from "../route.ts"
import { mayAs, type Viewer } from "../Viewer.ts"
import { DeliveryFilters, DeliveryList, OneDelivery, type Progress, ProgressView, RangeForm, statuses } from "./DeliveryViews.tsx"

type Needs = DeliveryBell | Reader | Secrets | Settings | Writer

const pageSize = 50
/** Failing deliveries that are shown before all others. */
const shownFirst = 10
/** Most deliveries that one form sends again: as many as a page can have. */
const mostChosen = 100
/** Pages of a range that one request orders again, 500 deliveries each: it ends soon, and shows how far it is. */
const pagesAtOnce = 2

const readFilters = (given: URLSearchParams) =>
  checked({
    status: optional(readOneOf(statuses))(textOf(given, "status")),
    from: optional(readMoment)(textOf(given, "from")),
    until: optional(readMoment)(textOf(given, "until"))
  })

type Filters = Either.Either.Right<ReturnType<typeof readFilters>>

const allStatuses = ["pending", "delivered", "failed", "cancelled"] as const

/** What a form of filters selects, of one status. Ids that nothing has select nothing. */
const selectionOf = (
  { owner }: Viewer,
  given: URLSearchParams,
  { from = 0, until = Number.MAX_SAFE_INTEGER }: Filters,
  status: LogRepo.DeliveryFilter
): LogRepo.Selection => ({
  owner,
  endpoint: (textOf(given, "endpoint") || undefined) as EndpointId | undefined,
  payment: (textOf(given, "payment") || undefined) as PaymentId | undefined,
  status,
  since: from,
  until
})

/** The fields of a form that select deliveries, for links and for the names of cursors. */
const filterFields = (given: URLSearchParams) =>
  Object.fromEntries(["status", "endpoint", "payment", "from", "until"].map((name) => [name, textOf(given, name)]))

const placeOf = (viewer: Viewer, text: string, list: string) =>
  Effect.map(Secrets, (secrets) => (text === "" ? undefined : makeCursors(secrets).decode(text, viewer.owner, list)))

const cursorOf = (viewer: Viewer, place: Place | undefined, list: string) =>
  Effect.map(Secrets, (secrets) => place && makeCursors(secrets).encode(place, viewer.owner, list))

const list: PortalHandler<Needs> = (viewer, { query }) =>
  Effect.gen(function* () {
    const reader = yield* Reader
    const endpoints = yield* EndpointsRepo.list(reader, viewer.owner)
    const read = readFilters(query)
    const problems = Either.isLeft(read) ? read.left : []
    const chosen: Filters = Either.getOrElse(read, () => ({ status: undefined, from: undefined, until: undefined }))
    const fields = filterFields(query)
    const name = JSON.stringify(["portal deliveries", fields])
    const here = pathOf(viewer, "/deliveries")
    const before = yield* placeOf(viewer, textOf(query, "cursor"), name)
    const isPlain = before === undefined && Object.values(fields).every((value) => value === "")
    const failing = isPlain
      ? yield* LogRepo.list(reader, [selectionOf(viewer, query, chosen, "failing")], shownFirst)
      : []
    const selections = (chosen.status === undefined ? allStatuses : [chosen.status]).map((status) =>
      selectionOf(viewer, query, chosen, status)
    )
    const found = problems.length > 0 ? [] : yield* LogRepo.list(reader, selections, pageSize + 1, before)
    const next = yield* cursorOf(viewer, found.length > pageSize ? found[pageSize - 1] : undefined, name)
    return shown(
      viewer,
      "/deliveries",
      "Deliveries",
      <>
        <Outcome of={query} />
        {problems.map(({ message, path }) => (
          <Notice key={path} tone="bad">
            <p>
              The filter {path} {message}.
            </p>
          </Notice>
        ))}
        {mayAs(viewer.role, "admin") ? (
          <p>
            <a href={`${here}/resend-range`}>Send a range again</a>
          </p>
        ) : null}
        {failing.length === 0 ? null : (
          <>
            <h2>Failing</h2>
            <DeliveryList
              viewer={viewer}
              id="failing"
              caption="Deliveries that have failed and not arrived, newest first"
              deliveries={failing}
              empty=""
            />
            <p>
              <a href={`${here}?status=failing`}>All that are failing</a>
            </p>
            <h2>All</h2>
          </>
        )}
        <DeliveryFilters viewer={viewer} endpoints={endpoints} of={{ id: "filters", typed: query, problems: [] }} />
        <DeliveryList
          viewer={viewer}
          id="all"
          caption="Deliveries, newest first"
          deliveries={found.slice(0, pageSize)}
          empty="No delivery. Each event makes one for every endpoint that takes it, and for a payment’s webhookUrl."
        />
        <Paging
          first={before && withQuery(here, fields)}
          next={next && withQuery(here, { ...fields, cursor: next })}
        />
      </>,
      problems.length > 0 ? 422 : 200
    )
  })

const outcomes = ["ordered", "due", "refused"] as const

const outcomeTexts: Readonly<Record<(typeof outcomes)[number], string>> = {
  ordered: "sent again now",
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
    <Notice tone={of.has("refused") ? "warning" : "good"}>
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
    return shown(
      viewer,
      "/deliveries",
      `Delivery of ${delivery.kind}`,
      <>
        <Outcome of={query} />
        <OneDelivery viewer={viewer} of={delivery} body={body} endpoints={endpoints} />
      </>
    )
  })

const overQuota = (viewer: Viewer) =>
  shown(
    viewer,
    "/deliveries",
    "No room for more",
    <p>The account has stored as much as it may: ask the operator for more room, or send fewer at once.</p>,
    507
  )

const administer = <A, E>(
  viewer: Viewer,
  detail: Act["detail"],
  work: Effect.Effect<A, E | QuotaExceeded | StoreUnavailable, Needs>
) => audited(viewer.actor, { act: "webhooks redeliver", detail }, () => work)

/** The endpoint that the field `to` names; undefined for none. Left: it is not one of this account and mode. */
const targetIn = Effect.fnUntraced(function* (viewer: Viewer, form: URLSearchParams) {
  const to = textOf(form, "to")
  if (to === "") return Either.right(undefined)
  const endpoint = yield* EndpointsRepo.find(yield* Reader, viewer.owner, to)
  return endpoint === undefined ? Either.left("must be one of the endpoints") : Either.right(endpoint)
})

const resendOne: PortalHandler<Needs> = (viewer, { form, params: { id = "" } }) =>
  Effect.gen(function* () {
    const target = yield* targetIn(viewer, form)
    const found = yield* LogRepo.ofOwner(yield* Reader, viewer.owner, id)
    if (found === undefined || Either.isLeft(target)) return missing(viewer, "/deliveries", "delivery or endpoint")
    const to = target.right
    const ordered = yield* administer(viewer, { delivery: id, to: to?.id }, redeliver(id, to))
    if (ordered === undefined) return missing(viewer, "/deliveries", "delivery")
    return seeOther(withQuery(pathOf(viewer, `/deliveries/${ordered.id}`), { [ordered.result]: "1" }))
  }).pipe(Effect.catchTag("QuotaExceeded", () => Effect.succeed(overQuota(viewer))))

const resendChosen: PortalHandler<Needs> = (viewer, { form }) =>
  Effect.gen(function* () {
    const reader = yield* Reader
    const counts = { ordered: 0, due: 0, refused: 0 }
    for (const id of new Set(form.getAll("id").slice(0, mostChosen))) {
      if ((yield* LogRepo.ofOwner(reader, viewer.owner, id)) === undefined) continue
      const ordered = yield* administer(viewer, { delivery: id }, redeliver(id, undefined))
      if (ordered !== undefined) counts[ordered.result] += 1
    }
    const query = Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, count > 0 ? String(count) : ""]))
    return seeOther(withQuery(pathOf(viewer, "/deliveries"), query))
  }).pipe(Effect.catchTag("QuotaExceeded", () => Effect.succeed(overQuota(viewer))))

const rangePage = (viewer: Viewer, of: FormState, status?: number) =>
  Effect.gen(function* () {
    const endpoints = yield* EndpointsRepo.list(yield* Reader, viewer.owner)
    return shown(
      viewer,
      "/deliveries",
      "Send a range again",
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
    const read = Either.flatMap(checked({ to: target }), ({ to }) => Either.map(readFilters(form), (filters) => ({ to, filters })))
    if (Either.isLeft(read)) return yield* rangePage(viewer, { id: "range", typed: form, problems: read.left }, 422)
    const { filters, to } = read.right
    // Deliveries that this adds, with `to`, are not of the range: it ends where it was begun, in every part.
    const started = Either.getOrElse(readMoment(textOf(form, "started")), () => now)
    const until = Math.min(filters.until ?? Number.POSITIVE_INFINITY, started, now)
    const { status = "failing" } = filters
    const fields = { ...filterFields(form), status, payment: "", to: to?.id ?? "" }
    const name = JSON.stringify(["portal redelivery", fields, started])
    const selection = selectionOf(viewer, form, { ...filters, until }, status)
    const sum = { ...sumIn(form) }
    let after = yield* placeOf(viewer, textOf(form, "cursor"), name)
    for (let page = 0; page < pagesAtOnce; page++) {
      const detail = { ...fields, after: after?.sequence }
      const { next, ...counts } = yield* administer(viewer, detail, redeliverPage(selection, to, after))
      after = next
      sum.ordered += counts.ordered
      sum.due += counts.due
      sum.refused += counts.refused
      if (after === undefined) break
    }
    const cursor = yield* cursorOf(viewer, after, name)
    const next =
      cursor === undefined
        ? undefined
        : {
            ...fields,
            cursor,
            started: iso(started),
            ...Object.fromEntries(Object.entries(sum).map(([name, count]) => [name, String(count)]))
          }
    return shown(
      viewer,
      "/deliveries",
      next === undefined ? "The range was sent again" : "Sending a range again",
      <ProgressView viewer={viewer} progress={sum} next={next} />
    )
  }).pipe(Effect.catchTag("QuotaExceeded", () => Effect.succeed(overQuota(viewer))))

export const deliveryRoutes: ReadonlyArray<PortalRoute<Needs>> = [
  { method: "GET", path: "/deliveries", role: "viewer", handle: list },
  {
    method: "GET",
    path: "/deliveries/resend-range",
    role: "admin",
    handle: (viewer) => rangePage(viewer, blank("range", { status: "failing" }))
  },
  { method: "POST", path: "/deliveries/resend-range", role: "admin", handle: resendRange },
  { method: "POST", path: "/deliveries/resend", role: "admin", handle: resendChosen },
  { method: "GET", path: "/deliveries/:id", role: "viewer", handle: one },
  { method: "POST", path: "/deliveries/:id/resend", role: "admin", handle: resendOne }
]
