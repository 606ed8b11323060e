/**
 * Connections to PostgreSQL. Statements are pipelined: each is sent at once and answered in order, so that those which do
 * not wait for each other cost one round trip together. Each is prepared once a connection.
 */
import type { Socket } from "node:net"
import { Effect } from "effect"
import pg from "pg"
import { type Db, type Param, StoreUnavailable } from "../Db.ts"
import { camelNames, ofStatement } from "./dialect.ts"

/** Where the store is, and who reads and writes it. */
export interface StorePlace {
  readonly client: pg.ClientConfig
  /** Another client than the library's: of tests, one that does not wait. */
  readonly makeClient?: (config: pg.ClientConfig) => pg.Client
  /** The name of the schema that has the tables. */
  readonly schema: string
}

/** No statement takes longer: PostgreSQL ends it, and a second later the connection is given up. */
const statementMillis = 10_000
/** A pause within a transaction holds its locks: a process that is stopped must not keep them beyond its lease. */
const idleInTransactionMillis = 4_000
const connectMillis = 5_000

const integer = (text: string): number => {
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new RangeError(`${text} of the store is no safe integer`)
  return value
}

/** By the numbers of PostgreSQL's types (`pg_type.oid`): what SQLite's driver gives for the same. */
const parsers: Readonly<Record<number, (text: string) => unknown>> = {
  16: (text) => (text === "t" ? 1 : 0),
  17: (text) => Buffer.from(text.slice(2), "hex"),
  20: integer,
  21: integer,
  23: integer,
  1700: integer
}
const asText = (text: string) => text
const types = { getTypeParser: (oid: number) => parsers[oid] ?? asText }

const reasons: ReadonlyArray<readonly [codes: RegExp, reason: string]> = [
  [/^(08|57P|E[A-Z]+$)/, "PostgreSQL cannot be reached. Remedy: see that it runs; tilld goes on by itself"],
  [/^53/, "PostgreSQL has no more room or connections. Remedy: give it more; tilld goes on by itself"],
  [/^57014/, "PostgreSQL did not answer in time. Remedy: see what keeps it busy; tilld goes on by itself"],
  [/^25P0[34]/, "a transaction was too slow, and PostgreSQL ended it; tilld tries again"],
  [/^40/, "PostgreSQL undid a transaction for another one; tilld tries again"],
  [/^25006/, "PostgreSQL is read-only, as a standby is. Remedy: name the primary in database.url"]
]

/** The code of an error of PostgreSQL (SQLSTATE), of the system, or of a connection that was lost. */
const codeOf = (cause: unknown): string => {
  if (!(cause instanceof Error)) return ""
  return "code" in cause && typeof cause.code === "string" ? cause.code : "08006"
}

/** `StoreUnavailable` where a later try may succeed; any other error is a defect. */
const failed = (cause: unknown): Effect.Effect<never, StoreUnavailable> => {
  const code = codeOf(cause)
  const reason = reasons.find(([codes]) => codes.test(code))?.[1]
  if (reason === undefined) return Effect.die(cause)
  const said = cause instanceof Error ? cause.message : `${cause}`
  return new StoreUnavailable({ code, message: `The store is unavailable (${code}, ${said}): ${reason}` })
}

// PostgreSQL has no U+0000 in a text. What is stored and what is searched for get the same in its place.
const withoutNul = (param: Param): Param => (typeof param === "string" ? param.replaceAll("\0", "\ufdd0") : param)

interface Prepared {
  readonly fields: ReadonlyMap<string, string>
  readonly integers: Set<number>
  text: string
  name: string
}

const isInteger = (param: Param | undefined) => typeof param === "number" || typeof param === "bigint"

/** The statements of a process: the same text has the same name in each of its connections. */
class Statements {
  readonly #prepared = new Map<string, Prepared>()
  #count = 0

  of(sql: string, params: ReadonlyArray<Param>): Prepared {
    const known = this.#prepared.get(sql)
    const integers = known?.integers ?? new Set<number>()
    const before = integers.size
    params.forEach((param, i) => {
      if (isInteger(param)) integers.add(i + 1)
    })
    if (known !== undefined && before === integers.size) return known
    // That a parameter is an integer may first be seen when it is not null.
    const prepared: Prepared = known ?? { fields: camelNames(sql), integers, text: "", name: "" }
    prepared.text = ofStatement(sql, integers)
    prepared.name = `s${++this.#count}`
    this.#prepared.set(sql, prepared)
    return prepared
  }
}

const statements = new Statements()

/** The rows with the names that their statement has, which PostgreSQL gives in lower case. */
const named = (result: pg.QueryResult, fields: ReadonlyMap<string, string>): ReadonlyArray<object> => {
  const renamed = result.fields.flatMap(({ name }) => (fields.has(name) ? [[name, fields.get(name) ?? name]] : []))
  if (renamed.length === 0) return result.rows
  for (const row of result.rows) {
    for (const [lower = "", name = ""] of renamed) {
      row[name] = row[lower]
      delete row[lower]
    }
  }
  return result.rows
}

const isWrite = /^(INSERT|UPDATE|DELETE)$/

/** A connection, open until it fails or is closed. */
export class StoreConnection {
  readonly #client: pg.Client
  #isOpen = true

  private constructor(client: pg.Client) {
    this.#client = client
    client.on("error", () => this.close())
    client.on("end", () => {
      this.#isOpen = false
    })
  }

  /** Fails where PostgreSQL cannot be reached; that it refuses to be used is a defect. */
  static readonly open = (
    { client: config, makeClient = (given) => new pg.Client(given), schema }: StorePlace,
    millis = statementMillis
  ): Effect.Effect<StoreConnection, StoreUnavailable> =>
    Effect.tryPromise(async () => {
      const client = makeClient({
        application_name: "tilld",
        ...config,
        types,
        pipeline: true,
        keepAlive: true,
        connectionTimeoutMillis: connectMillis,
        statement_timeout: millis,
        query_timeout: millis + 1_000,
        idle_in_transaction_session_timeout: idleInTransactionMillis
      } as pg.ClientConfig)
      const connection = new StoreConnection(client)
      await client.connect()
      await client.query(`SET search_path TO ${pg.escapeIdentifier(schema)}`)
      return connection
    }).pipe(Effect.catchAll(({ error }) => failed(error)))

  get isOpen(): boolean {
    return this.#isOpen
  }

  close(): void {
    this.#isOpen = false
    // Without waiting for PostgreSQL: it sees the end of the connection.
    this.#client.end(() => {})
  }

  /** What waits for an answer fails. The client's own `end` would wait for it. */
  abandon(): void {
    this.#isOpen = false
    ;(this.#client as unknown as { connection: { stream: Socket } }).connection.stream.destroy()
  }

  /** Runs a statement without parameters; gives what PostgreSQL says that it has done. */
  readonly script = (text: string): Effect.Effect<string, StoreUnavailable> =>
    Effect.async((resume) => {
      void this.#client.query(text, (cause: Error | null, result) =>
        resume(cause === null ? Effect.succeed(result.command) : failed(cause))
      )
    })

  /** Runs a statement in PostgreSQL's own words; gives its rows, of texts alone, as lists. */
  readonly lists = (
    text: string,
    values: ReadonlyArray<ReadonlyArray<string | null | undefined>> = []
  ): Effect.Effect<ReadonlyArray<ReadonlyArray<string | null>>, StoreUnavailable> =>
    Effect.async((resume) => {
      const asked = { text, values: [...values], rowMode: "array" as const }
      void this.#client.query(asked, (cause: Error | null, result) =>
        resume(cause === null ? Effect.succeed(result.rows) : failed(cause))
      )
    })

  #send(sql: string, params: ReadonlyArray<Param>): Effect.Effect<Answer, StoreUnavailable> {
    return Effect.async((resume) => {
      const { fields, name, text } = statements.of(sql, params)
      void this.#client.query({ name, text, values: params.map(withoutNul) }, (cause: Error | null, result) => {
        if (cause !== null) return resume(failed(cause))
        const changed = isWrite.test(result.command) ? (result.rowCount ?? 0) : undefined
        resume(Effect.succeed({ rows: named(result, fields), changed }))
      })
    })
  }

  /** Its statements, with counters of their own. */
  db(): Db {
    let writes = 0
    let changed = 0
    const send = (sql: string, params: ReadonlyArray<Param> = []) =>
      Effect.tap(
        Effect.tapErrorCause(this.#send(sql, params), () =>
          Effect.sync(() => {
            // PostgreSQL has undone what the transaction wrote.
            writes++
          })
        ),
        (answer) => {
          if (answer.changed === undefined) return
          writes++
          changed += answer.changed
        }
      )
    return {
      all: <Row extends object>(sql: string, params?: ReadonlyArray<Param>) =>
        Effect.map(send(sql, params), ({ rows }) => rows as ReadonlyArray<Row>),
      get: <Row extends object>(sql: string, params?: ReadonlyArray<Param>) =>
        Effect.map(send(sql, params), ({ rows }) => rows[0] as Row | undefined),
      run: (sql, params) => Effect.asVoid(send(sql, params)),
      runEach: (sql, rows) =>
        Effect.forEach(rows, (params) => send(sql, params), { concurrency: "unbounded", discard: true }),
      writes: () => writes,
      changes: Effect.sync(() => changed)
    }
  }
}

interface Answer {
  readonly rows: ReadonlyArray<object>
  /** The number of rows that it has changed; undefined for a query. */
  readonly changed: number | undefined
}

/** The code of a node that has lost the lease. */
export const fenced = "FENCED"
export const isFenced = new StoreUnavailable({
  code: fenced,
  message: "The store is unavailable: another node has taken over"
})

interface Reopening {
  readonly millis?: number
  /** Fails when this node may not work any more: what waits for PostgreSQL then fails at once. */
  readonly lost?: Effect.Effect<never, unknown>
}

/** Gives a connection that is opened when it is first used, and again after it was lost. */
export const reopened = (place: StorePlace, { lost = Effect.never, millis }: Reopening = {}) =>
  Effect.gen(function* () {
    let present: StoreConnection | undefined
    let isOver = false
    yield* Effect.addFinalizer(() => Effect.sync(() => present?.close()))
    const end = Effect.sync(() => {
      isOver = true
      present?.abandon()
    })
    yield* Effect.forkScoped(Effect.catchAll(lost, () => end))
    const one = yield* Effect.makeSemaphore(1)
    const open = one.withPermits(1)(
      Effect.suspend(() => {
        if (isOver) return isFenced
        if (present?.isOpen) return Effect.succeed(present)
        const opening = Effect.tap(StoreConnection.open(place, millis), (opened) => {
          present = opened
        })
        // The writer, which asks for it, is otherwise uninterruptible.
        return Effect.raceFirst(
          Effect.interruptible(opening),
          Effect.interruptible(Effect.zipRight(Effect.exit(lost), isFenced))
        )
      })
    )
    return { connect: Effect.suspend(() => (present?.isOpen ? Effect.succeed(present) : open)) }
  })
