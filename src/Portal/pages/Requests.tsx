/** The log of API requests: a list, and one of them. Read only. */
import { Effect } from "effect"
import * as RequestLogRepo from "../../Http/RequestLogRepo.ts"
import type { Secrets } from "../../Secrets.ts"
import { Reader } from "../../Sql.ts"
import { framedReply, listed, missing } from "../answers.tsx"
import { Chips, Filters, Hidden, TextField } from "../components/Form.tsx"
import { Facts, Status, Table, Time } from "../components/values.tsx"
import { type PortalHandler, type PortalRoute, pageRoute, pathOf } from "../route.ts"
import { textOf, withQuery } from "../Viewer.ts"

const tookText = ({ durationMicros }: RequestLogRepo.LoggedRequest) => `${(durationMicros / 1000).toFixed(1)} ms`

const Answer = ({ of: { errorCode, status } }: { readonly of: RequestLogRepo.LoggedRequest }) => (
  <>
    <Status of={String(status)} tone={status >= 500 ? "bad" : status >= 400 ? "warning" : "good"} />
    {errorCode === null ? null : (
      <>
        {" "}
        <code>{errorCode}</code>
      </>
    )}
  </>
)

const list: PortalHandler<Reader | Secrets> = Effect.fnUntraced(function* (viewer, { query }) {
  const reader = yield* Reader
  const key = textOf(query, "key")
  const only = textOf(query, "only")
  const id = textOf(query, "id")
  const filter = { key: key === "" ? undefined : key, isRefused: only === "refused" }
  const page = yield* listed(viewer, {
    ...{ path: "/requests", query, filters: { key, only } },
    placeOf: ({ at, sequence }: RequestLogRepo.ListedRequest) => ({ createdAt: at, sequence }),
    read: (before, limit) =>
      id === ""
        ? RequestLogRepo.list(reader, viewer.owner, filter, limit, before?.sequence)
        : Effect.map(RequestLogRepo.byId(reader, viewer.owner, id), (one) =>
            one === undefined ? [] : [{ ...one, sequence: 0 }]
          )
  })
  const here = pathOf(viewer, "/requests")
  const of = { id: "filters", typed: query, problems: [] }
  return framedReply(
    viewer,
    { section: "/requests", title: "Requests" },
    <>
      <Chips
        label="Answers"
        options={[["refused", "refused or failed"]]}
        chosen={only}
        hrefOf={(value) => withQuery(here, { key, only: value })}
      />
      <Filters action={here} used={key !== "" || query.has("id")}>
        <Hidden of={of} name="only" />
        <TextField of={of} name="id" label="Request id" placeholder="req_…" />
        <TextField of={of} name="key" label="Key id" placeholder="key_…" />
      </Filters>
      <Table
        caption="API requests, newest first"
        rows={page.rows}
        keyOf={({ id }) => id}
        hrefOf={({ id }) => `${here}/${id}`}
        empty="No request. Every request with one of your keys is here about a second after its answer."
        columns={[
          { name: "Request", cell: ({ method, path }) => `${method} ${path}` },
          { name: "Answer", cell: (request) => <Answer of={request} /> },
          {
            name: "Key",
            minor: true,
            cell: ({ key }) => (
              <a href={pathOf(viewer, `/keys/${key}`)}>
                <code>{`${key.slice(0, 10)}…`}</code>
              </a>
            )
          },
          { name: "Took", numeric: true, cell: tookText },
          { name: "Time", cell: ({ at }) => <Time at={at} /> }
        ]}
      />
      {page.paging}
    </>,
    page.status
  )
})

const one: PortalHandler<Reader> = Effect.fnUntraced(function* (viewer, { params }) {
  const request = yield* RequestLogRepo.byId(yield* Reader, viewer.owner, params.id ?? "")
  if (request === undefined) return missing(viewer, "/requests", "request")
  return framedReply(
    viewer,
    { section: "/requests", title: `${request.method} ${request.path}` },
    <>
      <section class="card">
        <Facts
          of={{
            Answer: <Answer of={request} />,
            "Request id": <code>{request.id}</code>,
            Key: (
              <a href={pathOf(viewer, `/keys/${request.key}`)}>
                <code>{request.key}</code>
              </a>
            ),
            Took: tookText(request),
            When: <Time at={request.at} />,
            Message: request.errorMessage ?? undefined
          }}
        />
      </section>
      <h2>What it sent</h2>
      {request.request === null ? (
        <p class="empty">No body.</p>
      ) : (
        <>
          <pre>{request.request}</pre>
          <p class="hint">
            Only values that cannot be secret are stored, and only in the form that their field takes. Answers are not
            stored.
          </p>
        </>
      )}
    </>
  )
})

export const requestRoutes: ReadonlyArray<PortalRoute<Reader | Secrets>> = [
  pageRoute("/requests", "viewer", list),
  pageRoute("/requests/:id", "viewer", one)
]
