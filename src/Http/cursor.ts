import { Effect, Redacted } from "effect"
import type { Owner } from "../Domain/Account.ts"
import { ApiError } from "../Domain/ApiError.ts"
import { defaultPageSize } from "../lib/parameters.ts"
import type { SecretsShape } from "../Secrets.ts"
import { answer } from "./Handler.ts"

export const invalidCursor = new ApiError({
  code: "INVALID_CURSOR",
  message: "The cursor is not one of this list: take it from the page before, with the same filters."
})

/** A place in a list that is ordered by time: the last row of a page. `createdAt` in Unix milliseconds. */
export interface Place {
  readonly createdAt: number
  readonly sequence: number
  /** Where the list ends, if that was fixed when its first page was asked for; Unix milliseconds. */
  readonly until?: number | undefined
}

/** Cursors of lists as opaque texts, which merchants send back. `list` names the list and its filters. */
export interface Cursors {
  readonly encode: (place: Place, owner: Owner, list: string) => string
  /** Undefined for a text that `encode` did not make, or made for another list. */
  readonly decode: (text: string, owner: Owner, list: string) => Place | undefined
}

const contextOf = ({ account, mode }: Owner, list: string): string => `cursor of ${account} ${mode} ${list}`

/** Sealed, because a sequence number reveals how many rows all accounts have together. */
export const makeCursors = ({ open, seal }: Pick<SecretsShape, "open" | "seal">): Cursors => ({
  encode: ({ createdAt, sequence, until }, owner, list) =>
    Buffer.from(seal([createdAt, sequence, until].join("/"), contextOf(owner, list))).toString("base64url"),
  decode: (text, owner, list) => {
    const sealed = Buffer.from(text, "base64url")
    // Base64url has more than one spelling, of which this is the one.
    if (sealed.toString("base64url") !== text) return undefined
    try {
      const [createdAt, sequence, until] = Redacted.value(open(sealed, contextOf(owner, list))).split("/")
      return { createdAt: Number(createdAt), sequence: Number(sequence), until: until ? Number(until) : undefined }
    } catch {
      return undefined
    }
  }
})

export interface PageOptions<Row, E, R> {
  readonly owner: Owner
  /** Names the list with its filters, to which a cursor is bound. */
  readonly list: string
  /** Empty or absent on the first page. */
  readonly cursor?: string | undefined
  readonly limit?: number | undefined
  readonly placeOf: (row: Row) => Place
  /** Reads at most `limit` rows behind a place. */
  readonly read: (after: Place | undefined, limit: number) => Effect.Effect<ReadonlyArray<Row>, E, R>
}

/** The place that a request's cursor names: undefined without one, and a refusal for one of another list. */
export const placeAt = ({ decode }: Cursors, owner: Owner, list: string, cursor = "") => {
  const place = cursor === "" ? undefined : decode(cursor, owner, list)
  return place === undefined && cursor !== "" ? invalidCursor : Effect.succeed(place)
}

/** A page of a list, and the cursor of the next one unless it is the last. */
export const pageOf = <Row, E, R>(
  cursors: Cursors,
  { cursor, limit = defaultPageSize, list, owner, placeOf, read }: PageOptions<Row, E, R>
) =>
  Effect.gen(function* () {
    const after = yield* placeAt(cursors, owner, list, cursor)
    // One more than asked for shows whether there is a next page.
    const found = yield* read(after, limit + 1)
    const rows = found.slice(0, limit)
    const last = found.length > limit ? rows.at(-1) : undefined
    return { rows, next: last && cursors.encode(placeOf(last), owner, list) }
  })

/** A page of a list of the API. A row may have no object there. */
export const answerPage = <Row, Body, E, R>(
  cursors: Cursors,
  objectsOf: (row: Row) => Body | ReadonlyArray<Body>,
  options: PageOptions<Row, E, R>
) =>
  Effect.map(pageOf(cursors, options), ({ next, rows }) =>
    answer({ data: rows.flatMap(objectsOf), cursor: next ?? null })
  )
