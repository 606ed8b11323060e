/** What the pages of deliveries show: lists, one delivery with its attempts, the progress of a range. */

import { Schema } from "effect"
import type { DeliveryFilter } from "../../Domain/DeliveryObject.ts"
import type { EndpointId, PaymentId } from "../../Domain/Ids.ts"
import type { Endpoint } from "../../Domain/Webhook.ts"
import { maybe, must } from "../../lib/annotations.ts"
import { Moment } from "../../lib/moment.ts"
import { cut } from "../../lib/text.ts"
import type * as LogRepo from "../../Webhooks/queue/DeliveryLogRepo.ts"
import type { LoggedAttempt, LoggedDelivery } from "../../Webhooks/queue/DeliveryLogRepo.ts"
import {
  blank,
  Chips,
  FilterProblems,
  Filters,
  type FormState,
  Hidden,
  PostForm,
  Select,
  TextField
} from "../components/Form.tsx"
import { Facts, Table } from "../components/Table.tsx"
import { CopyText, Status, Time } from "../components/values.tsx"
import { bodyOfForm, givenOf, textOf, withQuery } from "../fields.ts"
import { pathOf } from "../route.ts"
import { mayAs, type Viewer } from "../Viewer.ts"

/** Which deliveries a form or the filters of the list select, and its fields. */

/** `failing`: an attempt has failed, and none has succeeded yet. */
export const statuses = ["failing", "failed", "pending", "delivered", "cancelled"] as const

/** A time in UTC as browsers' date fields send it, or as the API takes it. */
const FormMoment = must(
  "be a time such as 2026-01-31T12:00, or a day such as 2026-01-31, in UTC",
  Schema.transform(Schema.String, Moment, {
    strict: true,
    decode: (text) => (/T\d\d:\d\d(:\d\d)?$/.test(text) ? `${text}Z` : text),
    encode: (text) => text
  })
)

/** The filters that are read; ids are taken as they are. */
const DeliveryFilterFields = Schema.Struct({
  status: maybe(must(`be one of ${statuses.join(", ")}`, Schema.Literal(...statuses))),
  from: maybe(FormMoment),
  until: maybe(FormMoment),
  started: maybe(FormMoment)
})
export type ReadFilters = typeof DeliveryFilterFields.Type

export const readFilters = (given: URLSearchParams) => bodyOfForm(DeliveryFilterFields, givenOf(given), 0)

/** What a form of filters selects, of one status. Ids that nothing has select nothing. */
export const selectionOf = (
  { owner }: Viewer,
  given: URLSearchParams,
  { from = 0, until = Number.MAX_SAFE_INTEGER }: ReadFilters,
  status: DeliveryFilter
): LogRepo.Selection => ({
  owner,
  endpoint: (textOf(given, "endpoint") || undefined) as EndpointId | undefined,
  payment: (textOf(given, "payment") || undefined) as PaymentId | undefined,
  status,
  since: from,
  until
})

/** The fields of a form that select deliveries, for links and for the names of cursors. */
export const filterFields = (given: URLSearchParams) =>
  Object.fromEntries(["status", "endpoint", "payment", "from", "until"].map((name) => [name, textOf(given, name)]))

const statusOf = ({ made, status }: LoggedDelivery): string => (status === "pending" && made > 0 ? "failing" : status)

/** The status of an attempt, or why there was none. */
const resultOf = ({ error, status }: LoggedAttempt): string => String(status ?? error ?? "no answer")

const lastResult = ({ attempts }: LoggedDelivery): string => {
  const last = attempts.at(-1)
  return last === undefined ? "not tried yet" : resultOf(last)
}

/** Where a delivery goes, without the parts of its URL that may be long. */
const targetText = (url: string): string => cut(url, 60, "…")

interface DeliveryListProps {
  readonly viewer: Viewer
  readonly caption: string
  readonly deliveries: ReadonlyArray<LoggedDelivery>
  readonly empty: string
  /** Unique on the page: the form of its checkboxes. */
  readonly id: string
}

/** A list of deliveries, whose checked ones can be sent again. */
export const DeliveryList = ({ caption, deliveries, empty, id, viewer }: DeliveryListProps) => {
  const maySend = mayAs(viewer.role, "admin") && deliveries.length > 0
  const chosen = (delivery: LoggedDelivery) => (
    <input
      type="checkbox"
      name="id"
      value={delivery.id}
      form={id}
      aria-label={`Choose ${delivery.kind} of ${delivery.merchantRef}`}
    />
  )
  const all = (
    <>
      <span class="visually-hidden">Choose</span>
      <input type="checkbox" data-chooses={id} aria-label="Choose all" hidden />
    </>
  )
  return (
    <>
      <Table
        caption={caption}
        rows={deliveries}
        keyOf={({ id }) => id}
        hrefOf={({ id }) => pathOf(viewer, `/deliveries/${id}`)}
        empty={empty}
        columns={[
          ...(maySend ? [{ name: "Choose", leads: true, head: all, cell: chosen }] : []),
          { name: "Event", cell: ({ kind }) => kind },
          { name: "Status", cell: (delivery) => <Status of={statusOf(delivery)} /> },
          { name: "Last answer", cell: lastResult },
          { name: "Attempts", numeric: true, minor: true, cell: ({ made }) => made },
          {
            name: "Payment",
            wide: true,
            cell: ({ merchantRef, payment }) => <a href={pathOf(viewer, `/payments/${payment}`)}>{merchantRef}</a>
          },
          { name: "To", minor: true, cell: ({ url }) => <span class="clipped">{url.replace("https://", "")}</span> },
          { name: "Created", minor: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
          {
            name: "Next attempt",
            cell: ({ nextAttemptAt }) => (nextAttemptAt === null ? "–" : <Time at={nextAttemptAt} />)
          }
        ]}
      />
      {maySend ? (
        <form id={id} class="on-chosen" method="post" action={pathOf(viewer, "/deliveries/resend")}>
          <input type="hidden" name="csrf" value={viewer.csrf} />
          <p class="actions">
            <button type="submit">Send the selected again</button>
          </p>
        </form>
      ) : null}
    </>
  )
}

const statusOptions = statuses.map((status) => [status, status] as const)

const endpointOptions = (endpoints: ReadonlyArray<Endpoint>, none: string) => [
  ["", none] as const,
  ...endpoints.map(({ id, url }) => [id, targetText(url)] as const)
]

const labels = {
  endpoint: "Endpoint",
  status: "Status",
  from: "Created from (UTC)",
  until: "Created before (UTC)",
  to: "Send to"
}

interface FilterProps {
  readonly of: FormState
  readonly endpoints: ReadonlyArray<Endpoint>
}

export const DeliveryFilters = ({ endpoints, of, viewer }: FilterProps & { readonly viewer: Viewer }) => {
  const path = pathOf(viewer, "/deliveries")
  const parameters = filterFields(of.typed)
  const chosen = endpoints.find(({ id }) => id === parameters.endpoint)
  return (
    <>
      <Chips
        label="Status"
        options={statusOptions}
        chosen={parameters.status}
        hrefOf={(status) => withQuery(path, { ...parameters, status })}
      />
      {chosen === undefined ? null : (
        <Chips
          label="Endpoint"
          options={[[chosen.id, targetText(chosen.url)]]}
          chosen={chosen.id}
          hrefOf={() => withQuery(path, { ...parameters, endpoint: "" })}
        />
      )}
      <FilterProblems of={of} />
      <Filters action={path} used={["payment", "from", "until"].some((name) => parameters[name])}>
        <Hidden of={of} name="status" />
        <Select of={of} name="endpoint" label={labels.endpoint} options={endpointOptions(endpoints, "all")} />
        <TextField of={of} name="payment" label="Payment" placeholder="pay_…" />
        <TextField of={of} name="from" label={labels.from} type="datetime-local" />
        <TextField of={of} name="until" label={labels.until} type="datetime-local" />
      </Filters>
    </>
  )
}

/** Chooses a range of deliveries to send again. */
export const RangeForm = ({ endpoints, of }: FilterProps) => (
  <section class="card" aria-label="The range">
    <PostForm of={of} to="/deliveries/resend-range" submit="Send them again" labels={labels}>
      <Select name="status" options={statusOptions} />
      <Select name="endpoint" options={endpointOptions(endpoints, "all")} />
      <TextField name="from" type="datetime-local" hint="Leave blank for all." />
      <TextField name="until" type="datetime-local" hint="Leave blank for up to now." />
      <Select name="to" options={endpointOptions(endpoints, "where they went before")} />
    </PostForm>
  </section>
)

/** How far sending a range again has come. */
export interface Progress {
  readonly ordered: number
  readonly due: number
  readonly refused: number
}

interface ProgressViewProps {
  readonly viewer: Viewer
  readonly progress: Progress
  /** The fields that go on with the range; undefined when it is done. */
  readonly next: Readonly<Record<string, string>> | undefined
}

/** How far a range has come, with the form for its next part. A script submits that form. */
export const ProgressView = ({ next, progress: { due, ordered, refused }, viewer }: ProgressViewProps) => (
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
        <input type="hidden" name="csrf" value={viewer.csrf} />
        {Object.entries(next).map(([name, value]) => (
          <input key={name} type="hidden" name={name} value={value} />
        ))}
        <p>There are more.</p>
        <button type="submit">Go on</button>
      </form>
    )}
  </>
)

/** One attempt: what was sent is the same each time; what came back is what is stored of it. */
const Attempt = ({ of, viewer }: { readonly of: LoggedAttempt; readonly viewer: Viewer }) => {
  const arrived = of.status !== null && of.status >= 200 && of.status < 300
  return (
    <li class={arrived ? "good" : "bad"}>
      <h3>
        Attempt {of.number}: {resultOf(of)}
        {of.isRedelivery ? ", sent by hand" : null}
      </h3>
      <p>
        <Time at={of.startedAt} />, took {Math.max(0, of.endedAt - of.startedAt)} ms
        {viewer.role === "operator" && of.address !== null ? `, ${of.address}` : null}
      </p>
      {of.status !== null && of.error !== null ? <p>{of.error}</p> : null}
      {of.bodyStart === null || of.bodyStart === "" ? null : (
        <>
          <p>The answer begins with:</p>
          <pre>{of.bodyStart}</pre>
        </>
      )}
    </li>
  )
}

interface OneDeliveryProps {
  readonly viewer: Viewer
  readonly of: LoggedDelivery
  /** The bytes that every attempt sends; undefined where they are no longer stored. */
  readonly body: string | undefined
  readonly endpoints: ReadonlyArray<Endpoint>
}

/** One delivery, with the exact request and every stored attempt. */
export const OneDelivery = ({ body, endpoints, of, viewer }: OneDeliveryProps) => {
  const form = blank("resend")
  return (
    <>
      {mayAs(viewer.role, "admin") ? (
        <section class="card">
          <h2>Send again</h2>
          <PostForm of={form} to={`/deliveries/${of.id}/resend`} submit="Send it again" labels={labels}>
            <Select name="to" options={endpointOptions(endpoints, "the same receiver, by its URL as it is now")} />
          </PostForm>
        </section>
      ) : null}
      <section class="card">
        <Facts
          of={{
            Status: <Status of={statusOf(of)} />,
            To: of.url,
            Endpoint:
              of.endpoint === null ? (
                "the payment’s own webhookUrl"
              ) : (
                <a href={pathOf(viewer, `/webhooks/${of.endpoint}`)}>
                  <code>{of.endpoint}</code>
                </a>
              ),
            Payment: <a href={pathOf(viewer, `/payments/${of.payment}`)}>{of.merchantRef}</a>,
            Event: <CopyText text={of.event} />,
            Identifier: <CopyText text={of.id} />,
            Created: <Time at={of.createdAt} />,
            "Next attempt": of.nextAttemptAt === null ? "none" : <Time at={of.nextAttemptAt} />
          }}
        />
      </section>
      <h2>Attempts</h2>
      {of.attempts.length === 0 ? <p class="empty">Not tried yet.</p> : null}
      <ol class="timeline">
        {of.attempts.map((attempt) => (
          <Attempt key={attempt.number} of={attempt} viewer={viewer} />
        ))}
      </ol>
      {of.made > of.attempts.length ? (
        <p class="hint">{of.made - of.attempts.length} attempts between the first and the last ones are not kept.</p>
      ) : null}
      <h2>Request</h2>
      <p>
        Every attempt is a POST of these bytes as <code>application/json</code>, with the event’s id in{" "}
        <code>webhook-id</code>. <code>X-Service-Signature</code>, <code>webhook-timestamp</code> and{" "}
        <code>webhook-signature</code> are made anew for each attempt, and are not stored.
      </p>
      {body === undefined ? <p class="empty">The body is no longer stored.</p> : <pre>{body}</pre>}
    </>
  )
}
