/** What the pages of the portal share while it runs. */

import { createHmac, timingSafeEqual } from "node:crypto"
import type { IncomingHttpHeaders } from "node:http"
import { Clock, Context, Data, Effect } from "effect"
import { Challenges, type RelyingParty, relyingPartyId } from "../Auth/passkeys.ts"
import * as Passwords from "../Auth/passwordHash.ts"
import * as NetworksRepo from "../Auth/SignInNetworksRepo.ts"
import type { Visitor } from "../Auth/sessions.ts"
import type { Person } from "../Domain/Person.ts"
import { networkOf, wideNetworkOf } from "../Http/clientAddress.ts"
import type { PageRequest } from "../Http/PageHandler.ts"
import { parseUrl } from "../lib/Url.ts"
import { type Limit, Windows } from "../lib/Windows.ts"
import { noteOf } from "../Operations/auditLog.ts"
import { Settings } from "../Settings.ts"
import { Reader, StoreUnavailable, Writer } from "../Sql.ts"

const minute = 60_000
const hour = 60 * minute

/** How often a person may act in an hour, and all people of an account together: so that a few keep nobody else out. */
interface ActLimits {
  readonly person: number
  readonly account: number
}

/** Of what stores a row that nothing deletes, if only in the audit log. */
export const formLimits: ActLimits = { person: 600, account: 6_000 }

/** A sign-in stores a row whether or not the account has room, and so does the sign-out after it. */
export const signInLimits: ActLimits = { person: 30, account: 600 }

/** Operators may do everything. */
export const limitsOf = (
  act: string,
  { account, id }: Pick<Person, "account" | "id">,
  limits: ActLimits
): ReadonlyArray<Limit> =>
  account === undefined
    ? []
    : [
        [`${act} of ${id}`, limits.person],
        [`${act} of account ${account}`, limits.account]
      ]

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

/**
 * Which refused passwords and proofs get a row in the audit log: of each person the first from a network in an hour,
 * and no more than ten rows an hour, so that no one floods the log.
 */
const notedRefusals = ({ id }: Person, network: string): ReadonlyArray<Limit> => [
  [`${id} ${network}`, 1],
  [id, 10]
]

/** Wrong passwords that may come from one place in a minute. */
const mostWrong = 10

/** Wrong links and passkeys of a network beyond so many within so long are answered late. */
const mostFailures = 5
const failureWindow = 5_000

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

/** Else what was given may be right. */
const isFailure = (error: unknown): boolean =>
  ![StoreUnavailable, TooManySignIns, Passwords.TooManyWaiting].some((other) => error instanceof other)

export const makeDesk = Effect.gen(function* () {
  const { publicUrl } = (yield* Settings).server
  const failures = new Windows(failureWindow)
  const wrongPasswords = new Windows(minute)
  const acts = new Windows(hour)
  const notes = new Windows(hour)
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
        notes.take(notedRefusals(person, networkOf(client)), now)
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
        const limits = limitsOf("sign-in", person, signInLimits)
        const until = acts.fullUntil(limits, now)
        if (until === undefined) return yield* Effect.tap(enter, () => Effect.sync(() => acts.take(limits, now)))
        const minutes = Math.ceil((until - now) / 60_000)
        const message = `You, or the people of your account, have signed in too often. Try again in ${minutes} min.`
        return yield* new TooManySignIns({ message })
      }),
    /** Counts a form that a person sends. When the next one is taken, if this is one too many; Unix milliseconds. */
    formRefusedUntil: (person: Person, now: number): number | undefined => {
      const limits = limitsOf("form", person, formLimits)
      return acts.take(limits, now) ? undefined : acts.fullUntil(limits, now)
    },
    /**
     * Runs a check of a password, unless too many have been wrong: of a person who is known only their own at their own network
     * count, so that nobody beside them keeps them out.
     */
    guess: <A, E, R>(
      { place }: Passwords.Claimant,
      check: Effect.Effect<A, E, R>
    ): Effect.Effect<A, E | Passwords.TooManyWaiting, R> =>
      Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const limits = [[place, mostWrong]] as const
        if (wrongPasswords.fullUntil(limits, now) !== undefined) return yield* Passwords.TooManyWaiting.of("wrong")
        return yield* Effect.tapError(check, (error) =>
          Effect.sync(() => isFailure(error) && wrongPasswords.take(limits, now))
        )
      }),
    /**
     * Runs a check of a link or a passkey. Nobody guesses one, so it is checked at once, however many others have failed: the
     * reply to a failure is what is late.
     */
    unguessable: <A, E, R>({ client, hold }: Pick<PageRequest, "client" | "hold">, check: Effect.Effect<A, E, R>) =>
      Effect.tapError(check, (error) =>
        Effect.gen(function* () {
          if (!isFailure(error)) return
          const wait = failures.excess(networkOf(client), mostFailures, yield* Clock.currentTimeMillis)
          if (wait > 0) yield* hold(Effect.sleep(wait))
        })
      )
  }
})
