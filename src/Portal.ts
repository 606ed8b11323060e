/**
 * The portal: finds the page of a request below `/portal`, once these have been checked in this order: whether the portal
 * is on, the client's address, a form's origin, the session, its CSRF token, that the person may see the account and mode,
 * the route, the role, how many forms the person has sent, and a fresh proof of identity. What a person may not see looks as if it did not exist.
 */

import { isUtf8 } from "node:buffer"
import { Clock, Context, Effect, Option, Schema, Stream } from "effect"
import * as AccountsRepo from "./Auth/AccountsRepo.ts"
import { isFresh, openSession, type SignedIn, sessionOf } from "./Auth/sessions.ts"
import { defaultAccount } from "./Auth.ts"
import type { Owner } from "./Domain/Account.ts"
import { bodyLimit } from "./Domain/ApiError.ts"
import { Mode } from "./Domain/Chain.ts"
import { AccountId } from "./Domain/Ids.ts"
import type { HttpReply, Pieces } from "./Http/HttpReply.ts"
import type { PageRequest } from "./Http/PageHandler.ts"
import { inRanges } from "./lib/IpRange.ts"
import { parametersIn } from "./lib/parameters.ts"
import { personName } from "./Operations/auditLog.ts"
import { OpenStreams } from "./Pages/OpenStreams.ts"
import { type ErrorText, errorPage, seeOther } from "./Pages/reply.tsx"
import type { PageRoom } from "./Pages.ts"
import { countOpen } from "./Payments/ExceptionsRepo.ts"
import { refusedInFrame } from "./Portal/answers.tsx"
import { csrfTokenOf, Desk, hasCsrfToken, isSameOrigin, makeDesk } from "./Portal/Desk.ts"
import { asking, bringsProof, isForPage, isTooLong, prove } from "./Portal/proof.tsx"
import { doneTexts, type PortalRoute, type Proof, pathOf } from "./Portal/route.ts"
import { routes as allRoutes } from "./Portal/routes.ts"
import {
  leave,
  login,
  loginPage,
  pairingRoute,
  signIn,
  signInPage,
  signInPath,
  signInRoute,
  toSignIn
} from "./Portal/signInPages.tsx"
import { mayAs, mostInBadge, namedIn, ProofNeeded, type Role, type Viewer } from "./Portal/Viewer.ts"
import { Settings, type SettingsShape } from "./Settings.ts"
import { type Db, Reader, type Writer } from "./Sql.ts"
import { countSince } from "./Webhooks/queue/DeliveryLogRepo.ts"

/** Why a form was not read. */
type FormProblem = "too large" | "too many fields" | "not a form"

/** Fields of a form: a page's hundred rows to choose from, and as many again. */
const mostFields = 200

const urlEncoded = /^application\/x-www-form-urlencoded\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?$/i

/** Whether there are more fields than there may be. Before they are parsed: Node 24 takes 10 ms for 64 KiB of `a&`. */
const hasTooMany = (body: Buffer): boolean => {
  let fields = 1
  for (let at = body.indexOf("&"); at !== -1; at = body.indexOf("&", at + 1)) if (++fields > mostFields) return true
  return false
}

/** The fields of a posted form, or why it is none: only `application/x-www-form-urlencoded` in UTF-8 is taken. */
export const readForm = ({ body, headers }: PageRequest): URLSearchParams | FormProblem => {
  if (body === undefined) return "too large"
  if (body.length > 0 && !urlEncoded.test(headers["content-type"] ?? "")) return "not a form"
  if (!isUtf8(body)) return "not a form"
  return hasTooMany(body) ? "too many fields" : new URLSearchParams(body.toString("utf8"))
}

const tooManyExports: ErrorText = {
  status: 429,
  title: "Other exports are running",
  text: "You, or the people of your account, are exporting already: wait until a file is complete, and export again."
}

/** Of a person, and of an account: see `OpenStreams`. */
const limits = { ofAll: 20, ofSubject: 2, ofClient: 6 }

/** A reply whose body ends with the session, and with the role that its page needs; undefined beyond a limit. */
export const makeStreamed = (db: Db) => {
  const exports = new OpenStreams(limits)

  /** An event stream is complete where it breaks off; a file is cut off. */
  const whileAllowed = (rest: Pieces, { session }: SignedIn, role: Role): Pieces =>
    Stream.mapEffect(rest, (piece) =>
      Effect.flatMap(Effect.orDie(openSession(db, session.id)), (found) =>
        found !== undefined && mayAs(found.person.role, role) ? Effect.succeed(piece) : Effect.interrupt
      )
    )

  return (reply: HttpReply, signedIn: SignedIn, account: string, role: Role): HttpReply | undefined => {
    if (reply.rest === undefined) return reply
    const allowed = whileAllowed(reply.rest, signedIn, role)
    if (reply.headers["content-type"] === "text/event-stream") return { ...reply, rest: allowed }
    const { id } = signedIn.person
    // The body begins later, and many may begin at once.
    return exports.mayOpen(id, account)
      ? { ...reply, rest: exports.counted(id, account, allowed, Stream.fromEffect(Effect.interrupt)) }
      : undefined
  }
}

type Params = Readonly<Record<string, string>>

const parameters = ({ path }: { readonly path: string }) => path.split("/:").length - 1

/** The route of a path, or the methods that it takes. Of several that fit, the one with the fewest parameters. */
type RouteMatch<Route> =
  | { readonly route: Route; readonly params: Params }
  | { readonly allow: ReadonlyArray<string> }
  | undefined

/** @param path below the page's account and mode, still percent-encoded */
export const matchRoute = <Route extends Pick<PortalRoute<never>, "method" | "path">>(
  routes: ReadonlyArray<Route>,
  method: string,
  path: string
): RouteMatch<Route> => {
  const fitting = routes
    .flatMap((route) => {
      const params = parametersIn(route.path.split("/"), path.split("/"))
      return params === undefined ? [] : [{ route, params }]
    })
    .toSorted((a, b) => parameters(a.route) - parameters(b.route))
  const asked = method === "HEAD" ? "GET" : method
  const found = fitting.find(({ route }) => route.method === asked)
  if (found !== undefined || fitting.length === 0) return found
  return { allow: [...new Set(fitting.map(({ route }) => route.method))] }
}

type ServicesOf<Route> = Route extends PortalRoute<infer R> ? R : never
type RouteServices = Exclude<ServicesOf<(typeof allRoutes)[number]>, Desk>

const texts = {
  notFound: {
    status: 404,
    title: "Not found",
    text: "There is nothing here, or nothing that you may see.",
    onward: toSignIn
  },
  address: {
    status: 403,
    title: "Not from here",
    text: "The portal may not be opened from your address: ask the operator to put it into portal.allow."
  },
  forged: {
    status: 403,
    title: "Nothing was done",
    text: "The form did not come from this session's own page. Open the page again, and send it from there."
  },
  signedOut: {
    status: 403,
    title: "You are signed out",
    text: "Nothing was done. Sign in again, and send the form once more: go back to find what you typed.",
    onward: toSignIn
  },
  longProof: {
    status: 413,
    title: "Too much text",
    text: "This needs a proof of identity first, and keeps 16 KiB of text until then. Nothing was done: go back, and shorten it."
  },
  role: { status: 403, title: "Not allowed", text: "Your role does not allow this. Ask an admin or the operator." },
  "too large": { status: 413, title: "Too large", text: `The form is larger than ${bodyLimit}. Nothing was done.` },
  "too many fields": {
    status: 413,
    title: "Too many fields",
    text: `A form may have ${mostFields} fields. Nothing was done: choose fewer at once.`
  },
  "not a form": {
    status: 415,
    title: "Not a form",
    text: "Send application/x-www-form-urlencoded in UTF-8. Nothing was done."
  }
} as const satisfies Record<string, ErrorText>

const tooManyForms = (minutes: number): ErrorText => ({
  status: 429,
  title: "Too many forms",
  text: `You, or the people of your account, have sent too many. Nothing was done: send it again in ${minutes} min.`
})

/** Whether a person may see an account: an operator every one there is, others their own. */
const maySee = ({ person }: SignedIn, account: AccountId) =>
  person.role === "operator"
    ? Effect.flatMap(Reader, (reader) => AccountsRepo.exists(reader, account))
    : Effect.succeed(person.account === account)

const ownerOf = (account: string, mode: string): Owner | undefined =>
  Option.getOrUndefined(
    Option.all({
      account: Schema.decodeUnknownOption(AccountId)(account),
      mode: Schema.decodeUnknownOption(Mode)(mode)
    })
  )

const hasLiveChain = ({ chains }: Pick<SettingsShape, "chains">): boolean => chains.some(({ mode }) => mode === "live")

/** Whether a route asks for a proof in a mode. */
const asksProof = ({ when }: Proof, mode: Mode, settings: Pick<SettingsShape, "chains">): boolean =>
  when === "always" || (when === "live" ? mode === "live" : hasLiveChain(settings))

/** Whose pages a person sees first: live ones where a live chain is configured. */
const firstOwnerOf = ({ person }: SignedIn, settings: Pick<SettingsShape, "chains">): Owner => ({
  account: person.account ?? defaultAccount,
  mode: hasLiveChain(settings) ? "live" : "test"
})

const viewerOf = Effect.fnUntraced(function* ({ person, secret, session }: SignedIn, owner: Owner, done?: string) {
  const reader = yield* Reader
  const viewer: Viewer = {
    ...{ person: person.id, name: person.name, role: person.role, owner, session: session.id },
    csrf: csrfTokenOf(secret),
    actor: Effect.succeed({ via: "portal", who: personName(person), owner }),
    done,
    badges: {
      "/exceptions": yield* countOpen(reader, owner, mostInBadge),
      "/deliveries": yield* countSince(reader, owner, "triedAgain", 0, mostInBadge)
    }
  }
  return viewer
})

/** No cache keeps a page of the portal, and its forms name their origin. */
const kept = (reply: HttpReply): HttpReply => ({
  ...reply,
  headers: { ...reply.headers, "cache-control": "no-store", "referrer-policy": "same-origin" }
})

type Services = RouteServices | Reader | Writer

/** Answers the requests below its prefix. `accountRoutes` are those of an account's pages. */
export const portalOf = <R>(accountRoutes: ReadonlyArray<PortalRoute<R | Desk>>) =>
  Effect.gen(function* () {
    const settings = yield* Settings
    const desk = yield* makeDesk
    const context = Context.add(yield* Effect.context<R | Reader | Writer>(), Desk, desk)
    const isAllowed = inRanges(settings.portal.allow)
    const streamed = makeStreamed(yield* Reader)

    /** Keeps the frame of whoever is signed in, in the account and mode of the page if they may see those. */
    const refusal = (request: PageRequest, signedIn: SignedIn, text: ErrorText, owner?: Owner) =>
      Effect.map(viewerOf(signedIn, owner ?? firstOwnerOf(signedIn, settings)), (viewer) =>
        refusedInFrame(viewer, text, request.requestId)
      )

    const accountPage = Effect.fnUntraced(function* (
      request: PageRequest,
      signedIn: SignedIn | undefined,
      form: URLSearchParams
    ) {
      if (signedIn === undefined) {
        return request.method === "POST"
          ? errorPage("portal", texts.signedOut, request.requestId)
          : seeOther(signInPath(request))
      }
      const [account = "", mode = "", ...rest] = request.path.split("/").slice(3)
      const owner = ownerOf(account, mode)
      if (owner === undefined || !(yield* maySee(signedIn, owner.account))) {
        return yield* refusal(request, signedIn, texts.notFound)
      }
      const refuse = (text: ErrorText) => refusal(request, signedIn, text, owner)
      const method = isForPage(form) ? "GET" : request.method
      const match = matchRoute(accountRoutes, method, rest.map((segment) => `/${segment}`).join(""))
      if (match === undefined) return yield* refuse(texts.notFound)
      if ("allow" in match) {
        const headers = { allow: match.allow.join(", ") }
        const text = `This page takes ${match.allow.join()}.`
        return yield* refuse({ status: 405, title: "Not this way", text, headers })
      }
      const { person } = signedIn
      const { params, route } = match
      if (!mayAs(person.role, route.role)) return yield* refuse(texts.role)
      if (request.method === "POST") {
        const now = yield* Clock.currentTimeMillis
        const until = desk.formRefusedUntil(person, now)
        if (until !== undefined) return yield* refuse(tooManyForms(Math.ceil((until - now) / 60_000)))
      }
      const query = new URLSearchParams(request.search)
      const viewer = yield* viewerOf(signedIn, owner, namedIn(doneTexts, query.get("done")))
      let typed = form
      const isNeeded =
        route.proof !== undefined && asksProof(route.proof, owner.mode, settings) && !(yield* isFresh(signedIn))
      const needed = isNeeded ? { to: route.proof.to, owner } : undefined
      if (needed !== undefined && isTooLong(form)) return yield* refuse(texts.longProof)
      const asksFirst = method !== "POST" || bringsProof(desk, form)
      if (needed !== undefined && asksFirst) {
        const proof = yield* prove(desk, request, signedIn, needed, form)
        if ("asks" in proof) return proof.asks
        typed = proof.form
      }
      // The page is shown by a GET, so that it can be loaded again.
      if (method !== request.method && request.method === "POST") {
        return seeOther(request.search === "" ? request.path : `${request.path}?${request.search}`)
      }
      const isProven = needed === undefined || asksFirst
      const reply = yield* route
        .handle(isProven ? viewer : { ...viewer, actor: new ProofNeeded() }, {
          ...{ params, query, form: typed, client: request.client, requestId: request.requestId }
        })
        .pipe(
          Effect.catchTag("ProofNeeded", (error) =>
            needed === undefined ? Effect.die(error) : asking(desk, request, signedIn, needed, form)
          )
        )
      return streamed(reply, signedIn, owner.account, route.role) ?? (yield* refuse(tooManyExports))
    })

    const respond = Effect.fnUntraced(function* (request: PageRequest) {
      const { client, headers, method, path, requestId, search } = request
      const refuse = (text: ErrorText) => errorPage("portal", text, requestId)
      if (!settings.portal.enabled) return refuse({ ...texts.notFound, onward: undefined })
      if (settings.portal.allow.length > 0 && !isAllowed(client)) return refuse(texts.address)
      const isPost = method === "POST"
      const form = isPost ? readForm(request) : new URLSearchParams()
      if (typeof form === "string") return refuse(texts[form])
      if (isPost && !isSameOrigin(headers, desk.publicUrl)) return refuse(texts.forged)
      const [, , room = "", token = "", ...more] = path.split("/")
      if (room === "login" && more.length === 0) {
        return yield* isPost ? login(desk, request, token) : loginPage(desk, request, token)
      }
      if (path === signInRoute && isPost) return yield* signIn(desk, request, form)
      const signedIn = yield* sessionOf(desk.cookie.read(headers))
      if (signedIn !== undefined) request.recognised()
      if (signedIn !== undefined && isPost && !hasCsrfToken(signedIn.secret, form)) return refuse(texts.forged)
      if (room === "a") return yield* accountPage(request, signedIn, form)
      if (path === pairingRoute) {
        if (signedIn === undefined) return seeOther(signInPath(request))
        const { account } = firstOwnerOf(signedIn, settings)
        const mode = settings.chains.some((chain) => chain.mode === "test") ? "test" : "live"
        return seeOther(`${pathOf({ owner: { account, mode } }, "/pair")}?${search}`)
      }
      if (path === "/portal/sign-out" && isPost) return yield* leave(desk, signedIn)
      if (path === signInRoute && signedIn === undefined) {
        return yield* signInPage(desk, new URLSearchParams(search))
      }
      if (path !== "/portal" && path !== "/portal/" && path !== signInRoute) {
        return signedIn === undefined ? refuse(texts.notFound) : yield* refusal(request, signedIn, texts.notFound)
      }
      return seeOther(signedIn === undefined ? signInRoute : pathOf({ owner: firstOwnerOf(signedIn, settings) }))
    })

    const room: PageRoom = (request) => Effect.provide(Effect.map(respond(request), kept), context)
    return room
  })

/** The portal with all its pages. */
export const makePortal: Effect.Effect<PageRoom, never, Services | Settings> = portalOf<RouteServices>(allRoutes)

/** Where shop plugins send a shop's admin, outside the portal: it leads there with the whole query. */
export const makePairing: Effect.Effect<PageRoom> = Effect.succeed(({ path, requestId, search }) =>
  Effect.succeed(
    /^\/api-keys\/authorize\/?$/.test(path)
      ? seeOther(`${pairingRoute}?${search}`)
      : errorPage("portal", texts.notFound, requestId)
  )
)
