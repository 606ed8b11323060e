/** Webhook deliveries: the list, and one with its attempts. `Redelivery.tsx` sends them again. */
import { Effect, Either } from "effect"
import { DeliveryStatus } from "../../Domain/DeliveryObject.ts"
import { bodyOf } from "../../Events/EventsRepo.ts"
import type { Secrets } from "../../Secrets.ts"
import { Reader } from "../../Sql.ts"
import * as LogRepo from "../../Webhooks/queue/DeliveryLogRepo.ts"
import * as EndpointsRepo from "../../Webhooks/queue/EndpointsRepo.ts"
import { Paging } from "../components/Table.tsx"
import { Notice } from "../components/values.tsx"
import { textOf } from "../fields.ts"
import { framedReply, missing } from "../framedReply.tsx"
import { pageSize, withQuery } from "../query.ts"
import { type PortalHandler, type PortalRoute, pathOf } from "../route.ts"
import { mayAs } from "../Viewer.ts"
import { DeliveryFilters, DeliveryList, FailingTargets, OneDelivery } from "./DeliveryViews.tsx"
import { cursorOf, filterFields, placeOf, type ReadFilters, readFilters, selectionOf } from "./deliverySelection.ts"

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
    const name = JSON.stringify(["portal deliveries", fields])
    const here = pathOf(viewer, "/deliveries")
    const before = yield* placeOf(viewer, textOf(query, "cursor"), name)
    const selections = (chosen.status === undefined ? DeliveryStatus.literals : [chosen.status]).map((status) =>
      selectionOf(viewer, query, chosen, status)
    )
    const found = problems.length > 0 ? [] : yield* LogRepo.list(reader, selections, pageSize + 1, before)
    const targets = before === undefined ? yield* LogRepo.failingTargets(reader, viewer.owner, mostFailing) : []
    const next = yield* cursorOf(viewer, found.length > pageSize ? found[pageSize - 1] : undefined, name)
    return framedReply(
      viewer,
      { section: "/deliveries", title: "Deliveries", isLive: before === undefined },
      <>
        <Outcome of={query} />
        <FailingTargets viewer={viewer} of={targets} found={found} />
        <DeliveryFilters viewer={viewer} endpoints={endpoints} of={{ id: "filters", typed: query, problems }} />
        <DeliveryList
          viewer={viewer}
          id="all"
          caption="Deliveries, newest first"
          deliveries={found.slice(0, pageSize)}
          empty="No delivery. Each event makes one for every endpoint that takes it, and for a payment’s webhookUrl."
        />
        <Paging first={before && withQuery(here, fields)} next={next && withQuery(here, { ...fields, cursor: next })} />
        {mayAs(viewer.role, "admin") ? (
          <p>
            <a href={`${here}/resend-range`}>Send a range again</a>
          </p>
        ) : null}
      </>,
      problems.length > 0 ? 422 : 200
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
