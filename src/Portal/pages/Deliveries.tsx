/** Webhook deliveries: the list, and one with its attempts. `Redelivery.tsx` sends them again. */
import { Effect, Either } from "effect"
import { DeliveryStatus } from "../../Domain/DeliveryObject.ts"
import { bodyOf } from "../../Events/EventsRepo.ts"
import type { Secrets } from "../../Secrets.ts"
import { Reader } from "../../Sql.ts"
import * as LogRepo from "../../Webhooks/queue/DeliveryLogRepo.ts"
import * as EndpointsRepo from "../../Webhooks/queue/EndpointsRepo.ts"
import { Notice } from "../components/values.tsx"
import { framedReply, missing } from "../framedReply.tsx"
import { listed } from "../listed.tsx"
import { type PortalHandler, type PortalRoute, pathOf } from "../route.ts"
import { mayAs } from "../Viewer.ts"
import { DeliveryFilters, DeliveryList, FailingTargets, OneDelivery } from "./DeliveryViews.tsx"
import { filterFields, type ReadFilters, readFilters, selectionOf } from "./deliverySelection.ts"

type Needs = Reader | Secrets

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

export const deliveryRoutes: ReadonlyArray<PortalRoute<Needs>> = [
  { method: "GET", path: "/deliveries", role: "viewer", handle: list },
  { method: "GET", path: "/deliveries/:id", role: "viewer", handle: one }
]
