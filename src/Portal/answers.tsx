/** What the portal answers: a page in its frame, the way of a form to what it does and back, a list, a file. */
import { Effect, Either, Option, Stream } from "effect"
import type { ComponentChildren } from "preact"
import { ApiError, type FieldProblem, statusOf } from "../Domain/ApiError.ts"
import { invalidCursor, makeCursors, type PageOptions, pageOf } from "../Http/cursor.ts"
import type { HttpReply, Pieces } from "../Http/HttpReply.ts"
import { betweenParts } from "../Http/parts.ts"
import { csvLine } from "../lib/text.ts"
import { carryOut } from "../Operations/auditLog.ts"
import { type Caller, decodeForm, type Operation } from "../Operations/operation.ts"
import { type ErrorText, pageReply } from "../Pages/reply.tsx"
import { Secrets } from "../Secrets.ts"
import { StoreUnavailable, type Writer } from "../Sql.ts"
import { blank, Onward, PostForm, type PostFormProps } from "./components/Form.tsx"
import { Notice, Paging } from "./components/values.tsx"
import { Frame, type FrameProps, otherModeOf } from "./Frame.tsx"
import { type PortalHandler, pathOf } from "./route.ts"
import { callerOf, ProofNeeded, pageSize, problemsOfRefusal, textOf, type Viewer, withQuery } from "./Viewer.ts"

/** A page of the portal as a reply; status 200 unless given. */
export const framedReply = (
  viewer: Viewer,
  frame: Omit<FrameProps, "viewer" | "children">,
  children: ComponentChildren,
  status = 200
): HttpReply =>
  pageReply(
    <Frame viewer={viewer} {...frame}>
      {children}
    </Frame>,
    { status }
  )

/** What an error page says. */
const Refusal = ({
  requestId,
  text,
  viewer
}: Pick<ErrorText, "text"> & { readonly viewer: Viewer; readonly requestId: string }) => (
  <>
    <p>{text}</p>
    <p>
      <a class="button" href={pathOf(viewer)}>
        To the home page
      </a>
    </p>
    <p class="request-id">
      Request: <code>{requestId}</code>
    </p>
  </>
)

/** An error inside the frame, so that whoever is signed in finds on. */
export const refusedInFrame = (
  viewer: Viewer,
  { headers, status, text, title }: ErrorText,
  requestId: string
): HttpReply => {
  const page = framedReply(viewer, { title }, <Refusal text={text} viewer={viewer} requestId={requestId} />, status)
  return { ...page, headers: { ...page.headers, ...headers } }
}

/** The same page whether there is none, or it is somebody else's. */
export const missing = (viewer: Viewer, section: FrameProps["section"], what: string): HttpReply =>
  framedReply(
    viewer,
    { section, title: `No such ${what}` },
    <section class="card" aria-label="What to do">
      <p>
        This account has no such {what} in {viewer.owner.mode} mode.
      </p>
      <p class="actions">
        <a class="button" href={pathOf(viewer, section === "/me" ? "" : section)}>
          Back to the list
        </a>
        <a href={pathOf(otherModeOf(viewer), section === "/me" ? "" : section)}>
          Look in {otherModeOf(viewer).owner.mode} mode
        </a>
      </p>
    </section>,
    404
  )

interface ConfirmationProps extends Pick<PostFormProps, "submit" | "to">, Pick<FrameProps, "section" | "title"> {
  /** The page to which the other link leads, below the account's. */
  readonly back: string
}

/** The page before what cannot be undone, which says what that is. */
export const confirmation = (
  viewer: Viewer,
  { back, section, submit, title, to }: ConfirmationProps,
  children: ComponentChildren
) =>
  framedReply(
    viewer,
    { section, title },
    <>
      {children}
      <PostForm of={blank("confirm")} to={to} submit={submit} dangerous>
        <Onward to={back}>Keep it</Onward>
      </PostForm>
    </>
  )

type Answer<R> = HttpReply | Effect.Effect<HttpReply, StoreUnavailable, R>

type Failure = { readonly _tag: string; readonly message: string }

/** What a refusal becomes, by its tag: an answer of its own, or the problem of a field. */
type Refusals<In, E extends Failure, R> = {
  readonly [Tag in Exclude<E["_tag"], "StoreUnavailable">]?: (
    error: Extract<E, { readonly _tag: Tag }>,
    input: In
  ) => FieldProblem | Answer<R>
}

interface Answers<In, Out, E extends Failure, R> {
  readonly done: (result: Out, input: In) => Answer<R>
  /** Shows the form again, with what is wrong with it, and the status for that. */
  readonly refused: (problems: ReadonlyArray<FieldProblem>, status: number) => Answer<R>
  /** Any other refusal is shown with the form: what the API says of fields, otherwise a problem of the whole. */
  readonly on?: Refusals<In, E, R>
}

const answered = <R,>(answer: Answer<R>) => (Effect.isEffect(answer) ? answer : Effect.succeed(answer))

/** Handles what is about one thing of the viewer's, by its id in the path. */
export const aboutOne =
  <Thing, R>(
    section: FrameProps["section"],
    what: string,
    find: (viewer: Viewer, id: string) => Effect.Effect<Thing | undefined, StoreUnavailable, R>
  ) =>
  <R2 = never>(
    handle: (viewer: Viewer, thing: Thing, form: URLSearchParams) => HttpReply | ReturnType<PortalHandler<R2>>
  ): PortalHandler<R | R2> =>
  (viewer, { form, params }) =>
    Effect.flatMap(find(viewer, params.id ?? ""), (thing): ReturnType<PortalHandler<R2>> => {
      const answer = thing === undefined ? missing(viewer, section, what) : handle(viewer, thing, form)
      return Effect.isEffect(answer) ? answer : Effect.succeed(answer)
    })

/** The way of a form's decoded fields to what it does, and back: `run` carries it out, once a proof is given. */
export const actOn = <In, Out, E extends Failure, R, R2 = never>(
  viewer: Viewer,
  input: Either.Either<In, ReadonlyArray<FieldProblem>>,
  run: (input: In, caller: Caller) => Effect.Effect<Out, E, R>,
  { done, on = {}, refused }: Answers<In, Out, E, R2>
): Effect.Effect<HttpReply, StoreUnavailable | ProofNeeded, R | R2> => {
  if (Either.isLeft(input)) return answered(refused(input.left, 422))
  const answers: Readonly<Record<string, ((error: never, input: In) => FieldProblem | Answer<R2>) | undefined>> = on
  return Effect.flatMap(callerOf(viewer), (caller) =>
    Effect.matchEffect(run(input.right, caller), {
      onSuccess: (result) => answered(done(result, input.right)),
      onFailure: (error: E | StoreUnavailable | ProofNeeded) => {
        if (error instanceof StoreUnavailable || error instanceof ProofNeeded) return Effect.fail(error)
        const answer = answers[error._tag]?.(error as never, input.right)
        if (answer !== undefined) return answered("path" in answer ? refused([answer], 422) : answer)
        return error instanceof ApiError
          ? answered(refused(problemsOfRefusal(error), statusOf[error.code]))
          : answered(refused([{ path: "", message: error.message }], 422))
      }
    })
  )
}

interface FormOf<In, InJson> {
  /** What was posted, and the names of its fields that are read. */
  readonly form: URLSearchParams
  readonly fields: ReadonlyArray<string & keyof In>
  /** Fields of the operation that the form does not have. */
  readonly given: Partial<InJson>
}

/** The way of a form to an operation and back. */
export const act = <In, InJson, Out, OutJson, E extends Failure, R, R2 = never>(
  viewer: Viewer,
  operation: Operation<In, InJson, Out, OutJson, E, R>,
  { fields, form, given, ...answers }: FormOf<In, InJson> & Answers<In, Out, E, R2>
): Effect.Effect<HttpReply, StoreUnavailable | ProofNeeded, R | R2 | Writer> =>
  actOn<In, Out, E | StoreUnavailable, R | Writer, R2>(
    viewer,
    decodeForm(operation, form, fields, given),
    (input, caller) => carryOut(operation, input, caller),
    answers as Answers<In, Out, E | StoreUnavailable, R2>
  )

interface ListOptions<Row, R> extends Pick<PageOptions<Row, StoreUnavailable, R>, "placeOf" | "read"> {
  /** The list's page, below the account's. */
  readonly path: string
  /** Its parameters, to which a cursor is bound. */
  readonly filters: Readonly<Record<string, string | undefined>>
  readonly query: URLSearchParams
}

/**
 * The page of a list that the query's cursor names: its rows, undefined for a cursor of another list, what is below them, and
 * the reply's status.
 */
export const listed = <Row, R>(viewer: Viewer, { filters, path, query, ...list }: ListOptions<Row, R>) =>
  Effect.gen(function* () {
    const here = pathOf(viewer, path)
    const cursor = query.get("cursor")?.trim() ?? ""
    const page = yield* pageOf(makeCursors(yield* Secrets), {
      ...{ owner: viewer.owner, list: JSON.stringify(["portal", path, Object.entries(filters).sort()]) },
      ...{ cursor, limit: pageSize, ...list }
    }).pipe(Effect.catchTag("ApiError", () => Effect.void))
    const isFirst = cursor === ""
    if (page === undefined) {
      return { rows: undefined, isFirst, status: 400, paging: <Notice tone="bad">{invalidCursor.message}</Notice> }
    }
    const first = isFirst ? undefined : withQuery(here, filters)
    const next = page.next && withQuery(here, { ...filters, cursor: page.next })
    return { rows: page.rows, isFirst, status: 200, paging: <Paging first={first} next={next} /> }
  })

/** What a list shows whose filters are wrong. */
export const notListed = { rows: undefined, isFirst: false, status: 400, paging: null } as const

interface ById {
  readonly limit: number
  readonly after?: string
}

/** The page of a list that goes on behind the id in the query. */
export const pageById = <Row extends { readonly id: string }, E, R>(
  viewer: Viewer,
  path: string,
  query: URLSearchParams,
  read: (page: ById) => Effect.Effect<ReadonlyArray<Row>, E, R>
) => {
  const here = pathOf(viewer, path)
  const after = textOf(query, "after")
  return Effect.map(read({ limit: pageSize + 1, ...(after && { after }) }), (found) => {
    const rows = found.slice(0, pageSize)
    const next = found.length > pageSize ? withQuery(here, { after: rows.at(-1)?.id }) : undefined
    return { rows, paging: <Paging first={after && here} next={next} /> }
  })
}

/** Files for spreadsheets (RFC 4180): read and sent a page at a time, however many rows there are. */

/** What a file has, by the names in its first line: the cells of each row; undefined is an empty one. */
export type CsvColumns<Row> = Readonly<Record<string, (row: Row) => string | undefined>>

/** Rows read at once: of the largest, a megabyte. */
const rowsAtOnce = 25

/** Reads a page of a file: at most `limit` rows behind the last one of the page before. */
type ReadRows<Row> = (after: Row | undefined, limit: number) => Effect.Effect<ReadonlyArray<Row>, StoreUnavailable>

/**
 * Ends with the store's failure, which cuts the file off: nobody takes a part of it for all.
 *
 * @param read the lines behind a place, and the place behind which there are more
 */
export const filePieces = <Place,>(
  head: string,
  read: (after: Place | undefined) => Effect.Effect<readonly [lines: string, next: Place | undefined], StoreUnavailable>
): Pieces =>
  Stream.concat(
    Stream.make(head),
    Stream.paginateEffect(undefined as Place | undefined, (after) =>
      Effect.map(
        Effect.zipRight(betweenParts, Effect.orDie(read(after))),
        ([lines, next]) => [lines, Option.fromNullable(next)] as const
      )
    )
  )

export const linePieces = <Row,>(head: string, line: (row: Row) => string, page: ReadRows<Row>): Pieces =>
  filePieces(head, (after: Row | undefined) =>
    Effect.map(
      page(after, rowsAtOnce),
      (rows) => [rows.map(line).join(""), rows.length < rowsAtOnce ? undefined : rows.at(-1)] as const
    )
  )

export const csvPieces = <Row,>(columns: CsvColumns<Row>, page: ReadRows<Row>): Pieces => {
  const cells = Object.values(columns)
  return linePieces(csvLine(Object.keys(columns)), (row) => csvLine(cells.map((cell) => cell(row) ?? "")), page)
}

/** A file to keep. */
export const fileReply = (name: string, type: string, rest: Pieces): HttpReply => ({
  status: 200,
  headers: {
    "content-type": `${type}; charset=utf-8`,
    "content-disposition": `attachment; filename="${name}"`,
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; sandbox"
  },
  text: "",
  rest
})

export const csvReply = (name: string, rest: Pieces) => fileReply(`${name}.csv`, "text/csv; header=present", rest)
