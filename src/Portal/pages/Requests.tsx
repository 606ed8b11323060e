/** The log of API requests: a list, and one of them. Read only. */
import { Effect } from "effect"
import { shopOf } from "../../Auth/ShopsRepo.ts"
import { decimalsOn, isToken, wholeTokens } from "../../Domain/Currency.ts"
import { usdValueOf } from "../../Domain/Quote.ts"
import * as RequestLogRepo from "../../Http/RequestLogRepo.ts"
import { Prices } from "../../Quotes/Prices.ts"
import type { Secrets } from "../../Secrets.ts"
import { Settings } from "../../Settings.ts"
import { Reader } from "../../Sql.ts"
import { Chips } from "../components/Chips.tsx"
import { Filters, Hidden, TextField } from "../components/Form.tsx"
import { Facts, Table } from "../components/Table.tsx"
import { isTiny, Status, Time } from "../components/values.tsx"
import { framedReply, missing } from "../framedReply.tsx"
import { listed } from "../listed.tsx"
import { textOf, withQuery } from "../query.ts"
import { type PortalHandler, type PortalRoute, pathOf } from "../route.ts"
import type { Viewer } from "../Viewer.ts"

const tookText = ({ durationMicros }: RequestLogRepo.LoggedRequest) => `${(durationMicros / 1000).toFixed(1)} ms`

/** Says of a request that made a payment worth nearly nothing what its amount was more likely meant to be. */
const tinyOf = Effect.fnUntraced(function* ({ owner }: Viewer) {
  const { minimumUsd } = yield* shopOf(yield* Reader, owner.account)
  const { chains } = yield* Settings
  const { usd } = yield* Prices
  return ({ method, mode, path, request, status }: RequestLogRepo.LoggedRequest) => {
    if (minimumUsd !== undefined || `${method} ${path}` !== "POST /v1/payments" || status >= 400) return undefined
    const { amount = "", chain = "", currency = "" }: Readonly<Record<string, string>> = JSON.parse(request ?? "{}")
    const decimals = decimalsOn(chains, { chain, mode }, currency)
    const price = isToken(currency) ? usd(currency) : undefined
    if (decimals === undefined || price === undefined || !/^[0-9]{1,78}$/.test(amount)) return undefined
    return isTiny(usdValueOf(BigInt(amount), decimals, price)) ? wholeTokens(currency, decimals) : undefined
  }
})

interface AnswerProps {
  readonly of: RequestLogRepo.LoggedRequest
  readonly meant: string | undefined
}

const Answer = ({ meant, of: { errorCode, status } }: AnswerProps) => (
  <>
    <Status of={String(status)} tone={status >= 500 ? "bad" : status >= 400 ? "warning" : "good"} />
    {errorCode === null ? null : (
      <>
        {" "}
        <code>{errorCode}</code>
      </>
    )}
    {meant === undefined ? null : <small class="muted"> worth less than 0.01 USD: {meant}</small>}
  </>
)

interface RequestTableProps {
  readonly viewer: Viewer
  readonly requests: ReadonlyArray<RequestLogRepo.LoggedRequest>
  readonly tiny: Effect.Effect.Success<ReturnType<typeof tinyOf>>
}

const RequestTable = ({ requests, tiny, viewer }: RequestTableProps) => (
  <Table
    caption="API requests, newest first"
    rows={requests}
    keyOf={({ id }) => id}
    hrefOf={({ id }) => pathOf(viewer, `/requests/${id}`)}
    empty="No request. Every request with one of your keys is here about a second after its answer."
    columns={[
      {
        name: "Request",
        cell: ({ method, path }) => `${method} ${path}`
      },
      { name: "Answer", cell: (request) => <Answer of={request} meant={tiny(request)} /> },
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
)

const list: PortalHandler<Prices | Reader | Secrets | Settings> = (viewer, { query }) =>
  Effect.gen(function* () {
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
        {page.rows === undefined ? null : (
          <RequestTable viewer={viewer} requests={page.rows} tiny={yield* tinyOf(viewer)} />
        )}
        {page.paging}
      </>,
      page.rows === undefined ? 400 : 200
    )
  })

const one: PortalHandler<Prices | Reader | Settings> = (viewer, { params }) =>
  Effect.gen(function* () {
    const request = yield* RequestLogRepo.byId(yield* Reader, viewer.owner, params.id ?? "")
    if (request === undefined) return missing(viewer, "/requests", "request")
    return framedReply(
      viewer,
      { section: "/requests", title: `${request.method} ${request.path}` },
      <>
        <section class="card">
          <Facts
            of={{
              Answer: <Answer of={request} meant={(yield* tinyOf(viewer))(request)} />,
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

export const requestRoutes: ReadonlyArray<PortalRoute<Prices | Reader | Secrets | Settings>> = [
  { method: "GET", path: "/requests", role: "viewer", handle: list },
  { method: "GET", path: "/requests/:id", role: "viewer", handle: one }
]
