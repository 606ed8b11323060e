/** What the pages of deliveries have in common: which are selected and by which form, their list, an attempt. */

import { Schema } from "effect"
import type { DeliveryFilter } from "../../Domain/DeliveryObject.ts"
import type { EndpointId, PaymentId } from "../../Domain/Ids.ts"
import type { Endpoint } from "../../Domain/Webhook.ts"
import { maybe, must } from "../../lib/annotations.ts"
import { Moment } from "../../lib/moment.ts"
import { cut } from "../../lib/text.ts"
import type * as LogRepo from "../../Webhooks/queue/DeliveryLogRepo.ts"
import type { LoggedAttempt, LoggedDelivery } from "../../Webhooks/queue/DeliveryLogRepo.ts"
import { Chips, FilterProblems, Filters, type FormState, Hidden, Select, TextField } from "../components/Form.tsx"
import { Status, Table, Time } from "../components/values.tsx"
import { pathOf } from "../route.ts"
import { bodyOfForm, givenOf, mayAs, textOf, type Viewer, withQuery } from "../Viewer.ts"

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
  plugins: true,
  since: from,
  until
})

/** The fields of a form that select deliveries, for links and for the names of cursors. */
export const filterFields = (given: URLSearchParams) =>
  Object.fromEntries(["status", "endpoint", "payment", "from", "until"].map((name) => [name, textOf(given, name)]))

export const statusOf = ({ made, status }: LoggedDelivery): string =>
  status === "pending" && made > 0 ? "failing" : status

/** The status of an attempt, or why there was none. */
const resultOf = ({ error, status }: LoggedAttempt): string => String(status ?? error ?? "no answer")

const lastResult = ({ attempts }: LoggedDelivery): string => {
  const last = attempts.at(-1)
  return last === undefined ? "not tried yet" : resultOf(last)
}

/** Where a delivery goes, without the parts of its URL that may be long. */
const targetText = (url: string): string => cut(url, 60, "…")

/** The form of the checkboxes in the list. */
const chosenForm = "all"

interface DeliveryListProps {
  readonly viewer: Viewer
  readonly deliveries: ReadonlyArray<LoggedDelivery> | undefined
}

/** A list of deliveries, whose checked ones can be sent again. */
export const DeliveryList = ({ deliveries, viewer }: DeliveryListProps) => {
  const maySend = mayAs(viewer.role, "admin") && !!deliveries?.length
  const chosen = (delivery: LoggedDelivery) => (
    <input
      type="checkbox"
      name="id"
      value={delivery.id}
      form={chosenForm}
      aria-label={`Choose ${delivery.kind} of ${delivery.merchantRef}`}
    />
  )
  const all = (
    <>
      <span class="visually-hidden">Choose</span>
      <input type="checkbox" data-chooses={chosenForm} aria-label="Choose all" hidden />
    </>
  )
  return (
    <>
      <Table
        caption="Deliveries, newest first"
        rows={deliveries}
        keyOf={({ id }) => id}
        hrefOf={({ id }) => pathOf(viewer, `/deliveries/${id}`)}
        empty="No delivery. Each event makes one for every endpoint that takes it, and for a payment’s webhookUrl."
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
        <form id={chosenForm} class="on-chosen" method="post" action={pathOf(viewer, "/deliveries/resend")}>
          <input type="hidden" name="csrf" value={viewer.csrf} />
          <p class="actions">
            <button type="submit">Send the selected again</button>
          </p>
        </form>
      ) : null}
    </>
  )
}

export const statusOptions = statuses.map((status) => [status, status] as const)

export const endpointOptions = (endpoints: ReadonlyArray<Endpoint>, none: string) => [
  ["", none] as const,
  ...endpoints.map(({ id, url }) => [id, targetText(url)] as const)
]

export const deliveryLabels = {
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
        <Select of={of} name="endpoint" label={deliveryLabels.endpoint} options={endpointOptions(endpoints, "all")} />
        <TextField of={of} name="payment" label="Payment" placeholder="pay_…" />
        <TextField of={of} name="from" label={deliveryLabels.from} type="datetime-local" />
        <TextField of={of} name="until" label={deliveryLabels.until} type="datetime-local" />
      </Filters>
    </>
  )
}

/** One attempt: what was sent is the same each time; what came back is what is stored of it. */
export const Attempt = ({ of, viewer }: { readonly of: LoggedAttempt; readonly viewer: Viewer }) => {
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
