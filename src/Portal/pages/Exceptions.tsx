/** The inbox of exceptions. What is open is shown unless something else is asked for. */
import { Effect, Either, Schema } from "effect"
import { PublicExceptionKind } from "../../Domain/Exception.ts"
import { problemsOf } from "../../Http/validationProblems.ts"
import { ListExceptionsQuery } from "../../Payments/decisions/Api.ts"
import { list, placeOf } from "../../Payments/ExceptionListRepo.ts"
import { references } from "../../Payments/PaymentListRepo.ts"
import type { Secrets } from "../../Secrets.ts"
import { Settings } from "../../Settings.ts"
import { Reader } from "../../Sql.ts"
import { Chips } from "../components/Chips.tsx"
import { ChainFilter, FilterProblems, Filters, type FormState, Select } from "../components/Form.tsx"
import { Table } from "../components/Table.tsx"
import { framedReply } from "../framedReply.tsx"
import { listed } from "../listed.tsx"
import { givenOf, withQuery } from "../query.ts"
import { type PortalHandler, type PortalRoute, pathOf } from "../route.ts"
import { exceptionColumns } from "./exceptionView.tsx"

const section = "/exceptions"
const { chain, kind, payment, status } = ListExceptionsQuery.fields
const decode = Schema.decodeUnknownEither(Schema.Struct({ chain, kind, payment, status }), { errors: "all" })

/** What a query asks for: what is open, unless it names another status. */
const filterOf = (query: URLSearchParams) => {
  const { cursor: _, status: wanted = "open", ...given } = givenOf(query)
  const filters = { ...given, ...(wanted === "all" ? {} : { status: wanted }) }
  const filter = Either.mapBoth(decode(filters), {
    onLeft: (error) => problemsOf(error, { kind: "query parameter", known: [] }),
    onRight: ({ status: is, ...rest }) => ({ ...rest, isOpen: is === undefined ? undefined : is === "open" })
  })
  return { wanted, given, filter }
}

const show: PortalHandler<Reader | Secrets | Settings> = Effect.fnUntraced(function* (viewer, { query }) {
  const { owner } = viewer
  const reader = yield* Reader
  const { chains } = yield* Settings
  const { filter: decoded, given, wanted } = filterOf(query)
  const path = pathOf(viewer, section)
  const parameters = { ...given, status: wanted }
  const state: FormState = {
    id: "filter",
    typed: new URLSearchParams(parameters),
    problems: Either.isLeft(decoded) ? decoded.left : []
  }
  const page = Either.isLeft(decoded)
    ? undefined
    : yield* listed(viewer, {
        ...{ path: section, query, filters: parameters, placeOf },
        read: (after, limit) => list(reader, owner, { ...decoded.right, limit, after })
      })
  const refs = yield* references(
    reader,
    (page?.rows ?? []).flatMap(({ payment: id }) => id ?? [])
  )
  return framedReply(
    viewer,
    { section, title: "Exceptions", isLive: page?.isFirst === true },
    <>
      <p class="muted">
        Money that does not match what was asked for: too much, too little, too late, or something else. Accept each, or
        send it back.
      </p>
      <Chips
        label="Status"
        options={[
          ["open", "open"],
          ["resolved", "decided"],
          ["all", "all"]
        ]}
        chosen={wanted}
        hrefOf={(status) => withQuery(path, { ...parameters, status })}
      />
      <FilterProblems of={state} />
      <Filters action={path} used={given.kind !== undefined || given.chain !== undefined}>
        <input type="hidden" name="status" value={wanted} />
        <Select
          of={state}
          name="kind"
          label="Kind"
          options={[
            ["", "any"],
            ...PublicExceptionKind.literals.map((one) => [one, one.replaceAll("_", " ")] as const)
          ]}
        />
        <ChainFilter of={state} />
      </Filters>
      {page?.rows === undefined ? null : (
        <Table
          caption="Exceptions, newest first"
          columns={exceptionColumns(viewer, chains, (id) => refs.get(id))}
          rows={page.rows}
          keyOf={({ id }) => id}
          hrefOf={({ id }) => pathOf(viewer, `${section}/${id}`)}
          empty={
            wanted === "open"
              ? "No exception is open: all money that came fits its payment, or was decided on."
              : "No exception fits."
          }
        />
      )}
      {page?.paging}
    </>,
    page?.rows === undefined ? 400 : 200
  )
})

export const exceptionsRoutes: ReadonlyArray<PortalRoute<Reader | Secrets | Settings>> = [
  { method: "GET", path: section, role: "viewer", handle: show }
]
