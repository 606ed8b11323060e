/** Sends deliveries again: one, several, or all of a range, which shows how far it is. */
import { Clock, Data, Effect, Either } from "effect"
import { type Act, audited } from "../../Auth/auditLog.ts"
import type { QuotaExceeded } from "../../Domain/AccountErrors.ts"
import { iso } from "../../Domain/Timestamp.ts"
import type { Endpoint } from "../../Domain/Webhook.ts"
import { seeOther } from "../../Pages/reply.tsx"
import type { Secrets } from "../../Secrets.ts"
import type { Settings } from "../../Settings.ts"
import { Reader, type StoreUnavailable, Tx, type Writer } from "../../Sql.ts"
import type { DeliveryBell } from "../../Webhooks/queue/DeliveryBell.ts"
import * as LogRepo from "../../Webhooks/queue/DeliveryLogRepo.ts"
import * as EndpointsRepo from "../../Webhooks/queue/EndpointsRepo.ts"
import { redeliver, redeliverPage } from "../../Webhooks/queue/redelivery.ts"
import { blank, type FormState } from "../components/Form.tsx"
import { checked, readMoment, textOf } from "../fields.ts"
import { framedReply, missing } from "../framedReply.tsx"
import { withQuery } from "../query.ts"
import { type PortalHandler, type PortalRoute, pathOf } from "../route.ts"
import type { Viewer } from "../Viewer.ts"
import { type Progress, ProgressView, RangeForm } from "./DeliveryViews.tsx"
import { cursorOf, filterFields, placeOf, readFilters, selectionOf } from "./deliverySelection.ts"

type Needs = DeliveryBell | Reader | Secrets | Settings | Writer

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

/** The endpoint was deleted while the order was given. Nothing was ordered. */
class EndpointGone extends Data.TaggedError("EndpointGone")<Record<never, never>> {}

/** The endpoint in the transaction of the order. */
const targetOf = (viewer: Viewer, to: Endpoint | undefined) =>
  to === undefined
    ? Effect.succeed(undefined)
    : Effect.gen(function* () {
        const found = yield* EndpointsRepo.find(yield* Tx, viewer.owner, to.id)
        return found ?? (yield* new EndpointGone())
      })

const refusals = (viewer: Viewer) => ({
  QuotaExceeded: () => Effect.succeed(overQuota(viewer)),
  EndpointGone: () => Effect.succeed(missing(viewer, "/deliveries", "endpoint"))
})

const resendOne: PortalHandler<Needs> = (viewer, { form, params: { id = "" } }) =>
  Effect.gen(function* () {
    const target = yield* targetIn(viewer, form)
    const found = yield* LogRepo.ofOwner(yield* Reader, viewer.owner, id)
    if (found === undefined || Either.isLeft(target)) return missing(viewer, "/deliveries", "delivery or endpoint")
    const to = target.right
    const ordered = yield* administer(
      viewer,
      { delivery: id, to: to?.id },
      redeliver(viewer.owner, id, targetOf(viewer, to))
    )
    if (ordered === undefined) return missing(viewer, "/deliveries", "delivery")
    return seeOther(withQuery(pathOf(viewer, `/deliveries/${ordered.id}`), { [ordered.result]: "1" }))
  }).pipe(Effect.catchTags(refusals(viewer)))

const resendChosen: PortalHandler<Needs> = (viewer, { form }) =>
  Effect.gen(function* () {
    const reader = yield* Reader
    const counts = { ordered: 0, due: 0, refused: 0 }
    for (const id of new Set(form.getAll("id").slice(0, mostChosen))) {
      if ((yield* LogRepo.ofOwner(reader, viewer.owner, id)) === undefined) continue
      const ordered = yield* administer(
        viewer,
        { delivery: id },
        redeliver(viewer.owner, id, targetOf(viewer, undefined))
      )
      if (ordered !== undefined) counts[ordered.result] += 1
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
    const selection = selectionOf(viewer, form, { ...filters, until }, status)
    const sum = { ...sumIn(form) }
    let after = yield* placeOf(viewer, textOf(form, "cursor"), name)
    for (let page = 0; page < pagesAtOnce; page++) {
      const detail = { ...fields, after: after?.sequence }
      const { next, ...counts } = yield* administer(
        viewer,
        detail,
        redeliverPage(selection, targetOf(viewer, to), after)
      )
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
    return framedReply(
      viewer,
      { section: "/deliveries", title: next === undefined ? "The range was sent again" : "Sending a range again" },
      <ProgressView viewer={viewer} progress={sum} next={next} />
    )
  }).pipe(Effect.catchTags(refusals(viewer)))

export const redeliveryRoutes: ReadonlyArray<PortalRoute<Needs>> = [
  {
    method: "GET",
    path: "/deliveries/resend-range",
    role: "admin",
    handle: (viewer) => rangePage(viewer, blank("range", { status: "failing" }))
  },
  { method: "POST", path: "/deliveries/resend-range", role: "admin", handle: resendRange },
  { method: "POST", path: "/deliveries/resend", role: "admin", handle: resendChosen },
  { method: "POST", path: "/deliveries/:id/resend", role: "admin", handle: resendOne }
]
