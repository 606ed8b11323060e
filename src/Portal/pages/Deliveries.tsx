/** Webhook deliveries: the list, one with its attempts, and sending them again: one, several, or all of a range. */

import { Clock, Effect, Either, Record as Struct } from "effect"
import type { Accounts } from "../../Auth.ts"
import { DeliveryStatus } from "../../Domain/DeliveryObject.ts"
import { isPluginEventKind } from "../../Domain/Event.ts"
import { EndpointId } from "../../Domain/Ids.ts"
import { eventBody } from "../../Events/EventStreams.ts"
import { makeCursors } from "../../Http/cursor.ts"
import { iso } from "../../lib/moment.ts"
import { carryOut } from "../../Operations/auditLog.ts"
import type { Caller } from "../../Operations/operation.ts"
import { seeOther } from "../../Pages/reply.tsx"
import { Secrets } from "../../Secrets.ts"
import type { Settings } from "../../Settings.ts"
import { Reader, type Writer } from "../../Sql.ts"
import { redeliverOne, redeliverRange } from "../../Webhooks/deliveryOperations.ts"
import { pluginBody } from "../../Webhooks/queue/DeliveriesRepo.ts"
import type { DeliveryBell } from "../../Webhooks/queue/DeliveryBell.ts"
import * as LogRepo from "../../Webhooks/queue/DeliveryLogRepo.ts"
import * as EndpointsRepo from "../../Webhooks/queue/EndpointsRepo.ts"
import { act, actOn, framedReply, listed, missing } from "../answers.tsx"
import { blank, type FormState, Onward, PostForm, Select, TextField } from "../components/Form.tsx"
import { CopyText, Facts, Notice, Status, Time } from "../components/values.tsx"
import { formRoute, type PortalHandler, type PortalRoute, pageRoute, pathOf } from "../route.ts"
import { mayAs, textOf, type Viewer, withQuery } from "../Viewer.ts"
import {
  Attempt,
  DeliveryFilters,
  DeliveryList,
  deliveryLabels,
  endpointOptions,
  filterFields,
  type ReadFilters,
  readFilters,
  selectionOf,
  statusOf,
  statusOptions
} from "./DeliveryViews.tsx"

type Needs = Accounts | DeliveryBell | Reader | Secrets | Settings | Writer

const list: PortalHandler<Needs> = Effect.fnUntraced(function* (viewer, { query }) {
  const reader = yield* Reader
  const endpoints = yield* EndpointsRepo.list(reader, viewer.owner)
  const read = readFilters(query)
  const problems = Either.isLeft(read) ? read.left : []
  const chosen: ReadFilters = Either.getOrElse(read, () => ({}))
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
  return framedReply(
    viewer,
    { section: "/deliveries", title: "Deliveries", isLive: page.isFirst },
    <>
      <Outcome of={query} />
      <DeliveryFilters viewer={viewer} endpoints={endpoints} of={{ id: "filters", typed: query, problems }} />
      <DeliveryList viewer={viewer} deliveries={page.rows} />
      {page.paging}
      {mayAs(viewer.role, "admin") ? <Onward to="/deliveries/resend-range">Send a range again</Onward> : null}
    </>,
    problems.length > 0 ? 422 : page.status
  )
})

type Result = "ordered" | "due" | "refused"
type Counts = Record<Result, number>

const outcomeTexts: Readonly<Record<Result, string>> = {
  ordered: "sent again: the answer shows here in a moment",
  due: "about to be sent already",
  refused: "not possible: the endpoint was deleted, or takes no such events. Choose another endpoint to send to"
}

/** What came of sending deliveries again: counts in the address, after a redirect. */
const Outcome = ({ of }: { readonly of: URLSearchParams }) => {
  const counts = Object.entries(outcomeTexts).flatMap(([name, text]) => {
    const count = of.get(name) ?? ""
    return /^[1-9]\d{0,5}$/.test(count) ? [`${count} ${text}`] : []
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

const one: PortalHandler<Needs> = Effect.fnUntraced(function* (viewer, { params, query }) {
  const reader = yield* Reader
  const delivery = yield* LogRepo.ofOwner(reader, viewer.owner, params.id ?? "")
  if (delivery === undefined) return missing(viewer, "/deliveries", "delivery")
  const isOfPlugin = isPluginEventKind(delivery.kind)
  const stored = yield* eventBody(reader, viewer.owner, delivery.event)
  const body = stored && isOfPlugin ? pluginBody(delivery.id, delivery.endpoint ?? "", stored) : stored
  const endpoints = yield* EndpointsRepo.list(reader, viewer.owner, isOfPlugin)
  return framedReply(
    viewer,
    { section: "/deliveries", title: `Delivery of ${delivery.kind}`, isLive: true },
    <>
      <Outcome of={query} />
      {mayAs(viewer.role, "admin") ? (
        <section class="card">
          <h2>Send again</h2>
          <PostForm
            of={blank("resend")}
            to={`/deliveries/${delivery.id}/resend`}
            submit="Send it again"
            labels={deliveryLabels}
          >
            <Select name="to" options={endpointOptions(endpoints, "the same receiver, by its URL as it is now")} />
          </PostForm>
        </section>
      ) : null}
      <section class="card">
        <Facts
          of={{
            Status: <Status of={statusOf(delivery)} />,
            To: delivery.url,
            Endpoint:
              delivery.endpoint === null ? (
                "the payment’s own webhookUrl"
              ) : (
                <a href={pathOf(viewer, `/webhooks/${delivery.endpoint}`)}>
                  <code>{delivery.endpoint}</code>
                </a>
              ),
            Payment: <a href={pathOf(viewer, `/payments/${delivery.payment}`)}>{delivery.merchantRef}</a>,
            Event: <CopyText text={delivery.event} />,
            Identifier: <CopyText text={delivery.id} />,
            Created: <Time at={delivery.createdAt} />,
            "Next attempt": delivery.nextAttemptAt === null ? "none" : <Time at={delivery.nextAttemptAt} />
          }}
        />
      </section>
      <h2>Attempts</h2>
      {delivery.attempts.length === 0 ? <p class="empty">Not tried yet.</p> : null}
      <ol class="timeline">
        {delivery.attempts.map((attempt) => (
          <Attempt key={attempt.number} of={attempt} viewer={viewer} />
        ))}
      </ol>
      {delivery.made > delivery.attempts.length ? (
        <p class="hint">
          {delivery.made - delivery.attempts.length} attempts between the first and the last ones are not kept.
        </p>
      ) : null}
      <h2>Request</h2>
      <p>
        Every attempt is a POST of these bytes as <code>application/json</code>, signed anew and as your documentation
        says: the signature is not stored.
      </p>
      {body === undefined ? <p class="empty">The body is no longer stored.</p> : <pre>{body}</pre>}
    </>
  )
})

/** Most deliveries that one form sends again: as many as a page can have. */
const mostChosen = 100

const overQuota = (viewer: Viewer) =>
  framedReply(
    viewer,
    { section: "/deliveries", title: "No room for more" },
    <p>The account has stored as much as it may: ask the operator for more room.</p>,
    507
  )

/** Whether the endpoint that the field `to` names is one of this account and mode, where it names one. */
const isTarget = Effect.fnUntraced(function* ({ owner }: Viewer, to: string) {
  return to === "" || (yield* EndpointsRepo.find(yield* Reader, owner, to)) !== undefined
})

const gone = (viewer: Viewer) => missing(viewer, "/deliveries", "delivery or endpoint")

const refusals = (viewer: Viewer) => ({
  QuotaExceeded: () => overQuota(viewer),
  // It was deleted while the order was given: nothing was ordered.
  NotFound: () => gone(viewer)
})

const resendOne: PortalHandler<Needs> = Effect.fnUntraced(function* (viewer, { form, params: { id = "" } }) {
  const found = yield* LogRepo.ofOwner(yield* Reader, viewer.owner, id)
  if (found === undefined || !(yield* isTarget(viewer, textOf(form, "to")))) return gone(viewer)
  const done = (delivery: string, result: Result) =>
    seeOther(withQuery(pathOf(viewer, `/deliveries/${delivery}`), { [result]: "1" }))
  return yield* act(viewer, redeliverOne, {
    ...{ form, fields: ["to"], given: { id } },
    done: (ordered) => done(ordered.id, ordered.result),
    refused: () => gone(viewer),
    on: { ...refusals(viewer), RedeliveryRefused: () => done(id, "refused") }
  })
})

/** Orders deliveries of the viewer's again; how many came to what. */
const orderAll = Effect.fnUntraced(function* ({ owner }: Viewer, ids: ReadonlyArray<string>, caller: Caller) {
  const reader = yield* Reader
  const counts: Counts = { ordered: 0, due: 0, refused: 0 }
  for (const id of new Set(ids)) {
    if ((yield* LogRepo.ofOwner(reader, owner, id)) === undefined) continue
    const { result } = yield* carryOut(redeliverOne, { id }, caller).pipe(
      Effect.catchTag("RedeliveryRefused", () => Effect.succeed({ result: "refused" as const }))
    )
    counts[result] += 1
  }
  return counts
})

const resendChosen: PortalHandler<Needs> = (viewer, { form }) =>
  actOn(viewer, Either.right(form.getAll("id").slice(0, mostChosen)), (ids, caller) => orderAll(viewer, ids, caller), {
    done: (counts) =>
      seeOther(
        withQuery(
          pathOf(viewer, "/deliveries"),
          Struct.map(counts, (n) => (n > 0 ? String(n) : ""))
        )
      ),
    refused: () => gone(viewer),
    on: refusals(viewer)
  })

const rangePage = Effect.fnUntraced(function* (viewer: Viewer, of: FormState, status?: number) {
  const endpoints = yield* EndpointsRepo.list(yield* Reader, viewer.owner)
  return framedReply(
    viewer,
    { section: "/deliveries", title: "Send a range again" },
    <section class="card" aria-label="The range">
      <PostForm of={of} to="/deliveries/resend-range" submit="Send them again" labels={deliveryLabels}>
        <Select name="status" options={statusOptions} />
        <Select name="endpoint" options={endpointOptions(endpoints, "all")} />
        <TextField name="from" type="datetime-local" hint="Leave blank for all." />
        <TextField name="until" type="datetime-local" hint="Leave blank for up to now." />
        <Select name="to" options={endpointOptions(endpoints, "where they went before")} />
      </PostForm>
    </section>,
    status
  )
})

const sumIn = (form: URLSearchParams): Counts => {
  const count = (name: string) => (/^\d{1,9}$/.test(textOf(form, name)) ? Number(textOf(form, name)) : 0)
  return { ordered: count("ordered"), due: count("due"), refused: count("refused") }
}

/** How far a range has come, with the form for its next part, where there is one. A script submits that form. */
const progressPage = (viewer: Viewer, { due, ordered, refused }: Counts, next?: Readonly<Record<string, string>>) =>
  framedReply(
    viewer,
    { section: "/deliveries", title: next === undefined ? "The range was sent again" : "Sending a range again" },
    <>
      <section class="card" aria-live="polite">
        <p class="big">{ordered + due + refused} done</p>
        <Facts
          of={{
            "Sent again": ordered,
            "About to be sent already": due,
            "Not possible": refused === 0 ? 0 : `${refused}: their endpoint was deleted, or takes no such events`
          }}
        />
      </section>
      {next === undefined ? (
        <p>
          That is all. <a href={pathOf(viewer, "/deliveries")}>To the deliveries</a>
        </p>
      ) : (
        <form method="post" action={pathOf(viewer, "/deliveries/resend-range")} data-continues>
          {Object.entries({ csrf: viewer.csrf, ...next }).map(([name, value]) => (
            <input key={name} type="hidden" name={name} value={value} />
          ))}
          <p>There are more.</p>
          <button type="submit">Go on</button>
        </form>
      )}
    </>
  )

const resendRange: PortalHandler<Needs> = Effect.fnUntraced(function* (viewer, { form }) {
  const now = yield* Clock.currentTimeMillis
  const to = textOf(form, "to")
  const read = (yield* isTarget(viewer, to))
    ? readFilters(form)
    : Either.left([{ path: "to", message: "must be one of the endpoints" }])
  const cursors = makeCursors(yield* Secrets)
  const run = Effect.fnUntraced(function* (filters: ReadFilters, caller: Caller) {
    // Deliveries that this adds, with `to`, are not of the range: it ends where it was begun, in every part.
    const { started = now, status = "failing" } = filters
    const until = Math.min(filters.until ?? Number.POSITIVE_INFINITY, started, now)
    const fields = { ...filterFields(form), status, payment: "", to }
    const name = JSON.stringify(["portal redelivery", fields, started])
    const endpoint = textOf(form, "endpoint")
    const range = {
      ...viewer.owner,
      ...{ status, since: { at: filters.from ?? 0 }, until: { at: until } },
      ...(endpoint === "" ? {} : { endpoint }),
      ...(to === "" ? {} : { to: EndpointId.make(to, true) })
    }
    const before = sumIn(form)
    const begin = cursors.decode(textOf(form, "cursor"), viewer.owner, name)
    const part = begin === undefined ? range : { ...range, after: { mode: viewer.owner.mode, ...begin } }
    const done = yield* carryOut(redeliverRange, part, caller)
    const sum = Struct.map(before, (count, result) => count + done[result])
    const after = "next" in done ? done.next : undefined
    const next = after && {
      ...fields,
      ...{ cursor: cursors.encode(after, viewer.owner, name), started: iso(started) },
      ...Struct.map(sum, String)
    }
    return { sum, next }
  })
  return yield* actOn(viewer, read, run, {
    done: ({ next, sum }) => progressPage(viewer, sum, next),
    refused: (problems) => rangePage(viewer, { id: "range", typed: form, problems }, 422),
    on: { ...refusals(viewer), UnknownAccount: () => gone(viewer), RedeliveryRefused: () => gone(viewer) }
  })
})

export const deliveryRoutes: ReadonlyArray<PortalRoute<Needs>> = [
  pageRoute("/deliveries", "viewer", list),
  pageRoute("/deliveries/:id", "viewer", one),
  pageRoute("/deliveries/resend-range", "admin", (viewer) => rangePage(viewer, blank("range", { status: "failing" }))),
  formRoute("/deliveries/resend-range", "admin", resendRange),
  formRoute("/deliveries/resend", "admin", resendChosen),
  formRoute("/deliveries/:id/resend", "admin", resendOne)
]
