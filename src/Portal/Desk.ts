/** What the pages of the portal share while it runs. */

import { createHmac, timingSafeEqual } from "node:crypto"
import type { IncomingHttpHeaders } from "node:http"
import { Clock, Context, Data, Effect } from "effect"
import { FailureDelays } from "../Auth/FailureDelays.ts"
import { Challenges, type RelyingParty, relyingPartyId } from "../Auth/passkeys.ts"
import * as Passwords from "../Auth/passwordHash.ts"
import { allowanceOf, type RateLimit, spend, type Usage, unused } from "../Auth/rateLimitWindows.ts"
import * as NetworksRepo from "../Auth/SignInNetworksRepo.ts"
import type { Visitor } from "../Auth/sessions.ts"
import type { AccountId, PersonId } from "../Domain/Ids.ts"
import type { Person } from "../Domain/Person.ts"
import { networkOf, wideNetworkOf } from "../Http/clientAddress.ts"
import type { PageRequest } from "../Http/PageHandler.ts"
import { BoundedMap } from "../lib/BoundedMap.ts"
import { parseUrl } from "../lib/Url.ts"
import { noteOf } from "../Operations/auditLog.ts"
import { Settings } from "../Settings.ts"
import { Reader, StoreUnavailable, Writer } from "../Sql.ts"

/** People or accounts in memory: more than act within an hour. */
const capacity = 10_000

/** What a person may do in a time, and all people of an account together. Operators may do everything. */
interface Limits {
  readonly person: RateLimit
  readonly account: RateLimit
}

/**
 * Counts what people of accounts do that stores a row which nothing deletes, if only in the audit log. An account has the
 * limits of many people, so that a few keep nobody else of theirs out.
 */
export class ActLimit {
  readonly #limits: Limits
  readonly #usages = new BoundedMap<string, Usage>(capacity)

  constructor(limits: Limits) {
    this.#limits = limits
  }

  #usageOf(id: string): Usage {
    const usage = this.#usages.get(id) ?? unused()
    this.#usages.set(id, usage)
    return usage
  }

  #limited({ id }: Pick<Person, "id">, account: AccountId) {
    return [
      { of: "person", usage: this.#usageOf(id), limits: this.#limits.person },
      { of: "account", usage: this.#usageOf(`account ${account}`), limits: this.#limits.account }
    ] as const
  }

  /** When the next act is taken, if one at `now` were too many. Nothing is counted. Times in Unix milliseconds. */
  refusedUntil(person: Pick<Person, "account" | "id">, now: number): number | undefined {
    if (person.account === undefined) return undefined
    const { allowed, resetAt } = allowanceOf(this.#limited(person, person.account), now)
    return allowed ? undefined : resetAt
  }

  /** Counts an act. */
  count(person: Pick<Person, "account" | "id">, now: number): void {
    if (person.account !== undefined) spend(this.#limited(person, person.account), now)
  }
}

export const formLimits: Limits = {
  person: { perMinute: 60, perHour: 600 },
  account: { perMinute: 600, perHour: 6_000 }
}

/** A sign-in stores a row whether or not the account has room, and so does the sign-out after it. */
export const signInLimits: Limits = {
  person: { perMinute: 10, perHour: 30 },
  account: { perMinute: 100, perHour: 600 }
}

/** What every form of a session sends back: it follows from the session's secret, which no other site can read. */
export const csrfTokenOf = (secret: string): string => createHmac("sha256", secret).update("csrf").digest("base64url")

/** Whether a form came with its session's token. */
export const hasCsrfToken = (secret: string, form: URLSearchParams): boolean => {
  const expected = Buffer.from(csrfTokenOf(secret))
  const given = Buffer.from(form.get("csrf") ?? "")
  return given.length === expected.length && timingSafeEqual(given, expected)
}

const loopback = new Set(["localhost", "127.0.0.1", "[::1]"])

/**
 * Whether a form was sent from a page of this origin: `public_url`'s, or the one that the browser asked for, over https or
 * on this machine. Over http another site could give its own name this machine's address (DNS rebinding). Browsers that leave `Origin` out, or send `null` for a page without referrers, say it in `Sec-Fetch-Site`.
 */
export const isSameOrigin = ({ host, origin, ...headers }: IncomingHttpHeaders, publicUrl: string): boolean => {
  if (origin === undefined || origin === "null") return headers["sec-fetch-site"] === "same-origin"
  const from = parseUrl(origin)
  if (from === undefined) return false
  const own = new URL(publicUrl)
  if (from.protocol !== own.protocol) return false
  const isSafe = from.protocol === "https:" || loopback.has(from.hostname)
  return from.host === own.host || (isSafe && from.host === host?.toLowerCase())
}

const hour = 60 * 60_000
/** Networks of a person in an hour whose refusals are noted. */
const mostNetworks = 10

/**
 * Which refused passwords and proofs get a row in the audit log: of each person the first from a network in an hour,
 * and no more than ten rows an hour, so that no one floods the log.
 */
export class RefusalSeries {
  readonly #series = new BoundedMap<PersonId, { readonly since: number; readonly networks: Set<string> }>(capacity)

  /** Counts a refusal at `now`, Unix milliseconds. */
  isNoted(person: PersonId, network: string, now: number): boolean {
    const before = this.#series.get(person)
    const isOver = before === undefined || now < before.since || now - before.since >= hour
    const { networks, since } = isOver ? { since: now, networks: new Set<string>() } : before
    if (networks.has(network) || networks.size >= mostNetworks) return false
    this.#series.set(person, { since, networks: networks.add(network) })
    return true
  }
}

/** The value of a cookie; undefined where the request has none of that name. */
export const cookieOf = (header: string | undefined, name: string): string | undefined => {
  const part = (header ?? "").split(";").find((each) => each.trimStart().startsWith(`${name}=`))
  return part?.trim().slice(name.length + 1)
}

/**
 * The cookie that holds a session's secret. Over https the browser holds the cookie to this host alone, by its name (RFC 6265bis, 4.1.3.2). Over http, on the
 * operator's own machine, such a name is refused. It lasts as long as the browser does; the store knows when it ends.
 */
const sessionCookie = (publicUrl: string) => {
  const isSecure = publicUrl.startsWith("https:")
  const name = isSecure ? "__Host-tilld" : "tilld"
  const attributes = `Path=/; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`
  return {
    read: ({ cookie }: IncomingHttpHeaders) => cookieOf(cookie, name),
    /** Values of the `Set-Cookie` header. */
    set: (secret: string) => `${name}=${secret}; ${attributes}`,
    clear: `${name}=; ${attributes}; Max-Age=0`
  }
}

/** A person, or the people of their account, have signed in as often as they may. Nothing was done. */
export class TooManySignIns extends Data.TaggedError("TooManySignIns")<{ readonly message: string }> {}

export type DeskShape = Effect.Effect.Success<typeof makeDesk>

/** For the handlers of routes; `Portal.ts` provides it. */
export class Desk extends Context.Tag("tilld/Portal/Desk")<Desk, DeskShape>() {}

interface Refusal {
  readonly act: string
  readonly by: string
}

/** What was given may be right. */
const isNoFailure = (error: unknown): boolean => error instanceof StoreUnavailable || error instanceof TooManySignIns

export const makeDesk = Effect.gen(function* () {
  const { publicUrl } = (yield* Settings).server
  const failureDelays = new FailureDelays()
  const refusals = new RefusalSeries()
  const signIns = new ActLimit(signInLimits)
  const writer = yield* Writer
  const reader = yield* Reader
  const cookie = sessionCookie(publicUrl)
  const id = relyingPartyId(publicUrl)
  const party: RelyingParty | undefined =
    id === undefined ? undefined : { id, origin: new URL(publicUrl).origin, challenges: new Challenges() }
  return {
    publicUrl,
    cookie,
    hasher: yield* Passwords.makePasswordHasher,
    /** Undefined where passkeys cannot be used: see `relyingPartyId`. */
    party,
    /** The browser of a request. */
    visitorOf: ({ client, headers }: Pick<PageRequest, "client" | "headers">): Visitor => ({
      userAgent: headers["user-agent"] ?? "",
      address: client,
      network: networkOf(client),
      secret: cookie.read(headers)
    }),
    /**
     * Whose turn it is to have a password checked, which is `person`'s if there is one of that name. Known is who has signed in
     * from the client's network before.
     */
    claimantOf: ({ client }: Pick<PageRequest, "client">, person: Person | undefined) =>
      Effect.gen(function* () {
        const network = networkOf(client)
        const now = yield* Clock.currentTimeMillis
        // Looked for either way: the time must not tell whether there is such a name.
        const isKnown = yield* NetworksRepo.isKnown(reader, person?.id ?? "", network, now)
        return person !== undefined && isKnown && person.disabledAt === undefined
          ? Passwords.knownPerson(person, network)
          : Passwords.strangerAt(network, wideNetworkOf(client))
      }),
    /**
     * Puts a refused password or proof of a person into the audit log, if it is the first of a series. The reply does not
     * wait for it: names that nobody has are in no log, and the time must not tell them apart.
     */
    noteRefused: (person: Person, { client }: Pick<PageRequest, "client">, { act, by }: Refusal) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        refusals.isNoted(person.id, networkOf(client), now)
          ? Effect.forkDaemon(Effect.ignore(writer.write(noteOf(person, { act, detail: { by, address: client } }))))
          : Effect.void
      ),
    /**
     * Begins a session of a person who has proven who they are, unless they have begun too many. One that is not begun does not
     * count: the holder of a link that does not work for them keeps its person out with it otherwise.
     */
    admit: <A, E, R>(person: Person, enter: Effect.Effect<A, E, R>): Effect.Effect<A, E | TooManySignIns, R> =>
      Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const until = signIns.refusedUntil(person, now)
        if (until === undefined) return yield* Effect.tap(enter, () => Effect.sync(() => signIns.count(person, now)))
        const minutes = Math.ceil((until - now) / 60_000)
        const message = `You, or the people of your account, have signed in too often. Try again in ${minutes} min.`
        return yield* new TooManySignIns({ message })
      }),
    /**
     * Runs a check of a password. Its failures count for who tries, whose next attempts are held before they are checked: longer
     * with each failure, and one after the other. A person who is known is held for their own attempts at their own network alone,
     * so that nobody beside them keeps them out. A stranger's attempt that is not checked, since too many wait, counts too.
     */
    guess: <A, E, R>(
      { hold }: Pick<PageRequest, "hold">,
      { isKnown, owners }: Passwords.Claimant,
      check: Effect.Effect<A, E, R>
    ): Effect.Effect<A, E | Passwords.TooManyWaiting, R> => {
      const place = owners.at(-1) ?? ""
      const inTurn = Effect.gen(function* () {
        const wait = failureDelays.book(place, yield* Clock.currentTimeMillis)
        if (wait === undefined) return yield* Passwords.TooManyWaiting.of("theirs")
        if (wait > 0) yield* hold(Effect.sleep(wait))
        return yield* check
      })
      return Effect.tapError(inTurn, (error) =>
        // Of people who are known too many wait only while they, or others of their account, send them.
        isNoFailure(error) || (error instanceof Passwords.TooManyWaiting && isKnown)
          ? Effect.void
          : Effect.map(Clock.currentTimeMillis, (now) => void failureDelays.failed(place, now))
      )
    },
    /**
     * Runs a check of a link or a passkey. Nobody guesses one, so it is checked at once, however many others have failed: the
     * reply to a failure is what is late.
     */
    unguessable: <A, E, R>({ client, hold }: Pick<PageRequest, "client" | "hold">, check: Effect.Effect<A, E, R>) =>
      Effect.tapError(check, (error) =>
        Effect.gen(function* () {
          if (isNoFailure(error)) return
          const delay = failureDelays.failed(networkOf(client), yield* Clock.currentTimeMillis)
          if (delay > 0) yield* hold(Effect.sleep(delay))
        })
      )
  }
})
