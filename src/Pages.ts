/**
 * Finds and answers pages: the checkout, the portal and their assets. A room's modules are loaded with its first request,
 * so that the daemon's start and its idle memory do not pay for pages that nobody asks for. A page that fails is a page
 * too: 503 while the store cannot be used, 500 for a defect, which is logged. `Server.ts` gives it the rooms.
 */
import { Cause, Effect, Fiber, Option, Runtime } from "effect"
import { ApiError } from "./Domain/ApiError.ts"
import { errorReply, type HttpReply } from "./Http/HttpReply.ts"
import type { Page, PageRequest, Pages } from "./Http/PageHandler.ts"
import { overloaded } from "./Http/turns.ts"
import { type AssetRoom, compressed } from "./Pages/assets.ts"
import { StoreUnavailable } from "./Sql.ts"

/** Answers all requests for a room's pages. */
export type PageRoom = (request: PageRequest) => Effect.Effect<HttpReply, StoreUnavailable>

/** A room of pages below a prefix, loaded with its first request. */
export interface LazyRoom<R> {
  /** Without a slash at the end, e.g. `/portal`. */
  readonly prefix: string
  readonly room: AssetRoom
  readonly load: () => Promise<Effect.Effect<PageRoom, never, R>>
}

const methods = new Set(["GET", "HEAD", "POST"])

const isBelow = (prefix: string, path: string): boolean => path === prefix || path.startsWith(`${prefix}/`)

/** Loaded with the first page, since Preact comes with it. */
const errorPages = Effect.promise(() => import("./Pages/reply.tsx"))

const failed = (room: AssetRoom, cause: Cause.Cause<StoreUnavailable>, { method, path, requestId }: PageRequest) =>
  Effect.gen(function* () {
    if (Cause.isInterruptedOnly(cause)) return yield* Effect.interrupt
    const isStore = Option.exists(Cause.failureOption(cause), (error) => error instanceof StoreUnavailable)
    yield* (isStore ? Effect.logWarning("a page failed", cause) : Effect.logError("a page failed", cause)).pipe(
      Effect.annotateLogs({ requestId, method, path: path.replace(/^(\/pay\/|\/portal\/login\/)[^/]+/, "$1…") })
    )
    const { errorPage } = yield* errorPages
    const reply = isStore
      ? { status: 503, title: "Not available for the moment", text: "Nothing was changed. Try again in a moment." }
      : { status: 500, title: "Something went wrong", text: "The operator finds it in the log by this request id." }
    return errorPage(room, reply, requestId)
  })

/**
 * Evaluated once for all, when it is first asked for, in a fiber of its own: the client who asks first may leave meanwhile.
 * `Effect.cached` would give the interruption of that client's fiber to every later one.
 */
export const evaluatedOnce = <A, R>(evaluated: Effect.Effect<A, never, R>): Effect.Effect<Effect.Effect<A>, never, R> =>
  Effect.map(Effect.runtime<R>(), (runtime) => {
    let fiber: Fiber.RuntimeFiber<A> | undefined
    return Effect.suspend(() => {
      fiber ??= Runtime.runFork(runtime)(evaluated)
      return fiber.unsafePoll() ?? Effect.flatten(Fiber.await(fiber))
    })
  })

/** Made once for all requests: there are too many of them. */
const overloadedPage = (room: AssetRoom): Effect.Effect<Effect.Effect<HttpReply>> =>
  evaluatedOnce(
    Effect.map(errorPages, ({ errorPage }) => {
      const text = "Too many people are asking at the same time. Nothing was done. Try again in a few seconds."
      const { headers } = overloaded
      const reply = errorPage(room, { status: 503, title: "Busy at the moment", text, ...(headers && { headers }) })
      return { ...reply, bytes: [Buffer.from(reply.text)] }
    })
  )

const lazily = <R>({ load, prefix, room }: LazyRoom<R>) =>
  Effect.gen(function* () {
    const respond = yield* evaluatedOnce(Effect.flatten(Effect.promise(load)))
    const context = yield* Effect.context<R>()
    const page: Page = {
      route: { path: `${prefix}/*`, operations: methods },
      reply: (request) =>
        respond.pipe(
          Effect.flatMap((answer) => answer(request)),
          Effect.map((answer) => (room === "checkout" ? compressed(request, answer) : answer)),
          Effect.provide(context),
          Effect.catchAllCause((cause) => failed(room, cause, request))
        ),
      overloaded: yield* overloadedPage(room)
    }
    return { prefix, page }
  })

const assetsPage = (overloaded: Effect.Effect<HttpReply>): Page => ({
  route: { path: "/assets/*", operations: new Set(["GET", "HEAD"]) },
  reply: ({ headers, path, requestId }) =>
    Effect.gen(function* () {
      const { assets } = yield* Effect.promise(() => import("./Pages/assets.ts"))
      const encoding = headers["accept-encoding"]
      const found = assets().reply(path, Array.isArray(encoding) ? encoding.join() : encoding)
      if (found !== undefined) return found
      const { errorPage } = yield* errorPages
      return errorPage("checkout", { status: 404, title: "Not found", text: "There is nothing here." }, requestId)
    }),
  overloaded
})

/** Where people and programs begin. Relative, so that it works behind a proxy that serves tilld below a path. */
const start = { name: "tilld", api: "v1", docs: "docs", openapi: "openapi.json", portal: "portal" }

const readOnly = new ApiError({
  code: "METHOD_NOT_ALLOWED",
  message: "This path takes GET, HEAD.",
  headers: { allow: "GET, HEAD" }
})

const startPage = (overloaded: Effect.Effect<HttpReply>): Page => ({
  route: { path: "/", operations: new Set(["GET", "HEAD"]) },
  reply: ({ headers, method, requestId }) => {
    if (method !== "GET" && method !== "HEAD") return Effect.succeed(errorReply(readOnly, requestId))
    return Effect.succeed(
      headers.accept?.includes("text/html") === true
        ? { status: 303, headers: { location: start.portal, vary: "accept" }, text: "" }
        : { status: 200, headers: { vary: "accept" }, text: JSON.stringify(start) }
    )
  },
  overloaded
})

/** Finds the page of a path among the rooms. */
export const makePages = <R>(rooms: ReadonlyArray<LazyRoom<R>>): Effect.Effect<Pages, never, R> =>
  Effect.gen(function* () {
    const found = yield* Effect.forEach(rooms, lazily, { concurrency: 1 })
    const overloaded = yield* overloadedPage("checkout")
    const all = [...found, { prefix: "/assets", page: assetsPage(overloaded) }]
    const root = startPage(overloaded)
    return (path) => (path === "/" ? root : all.find(({ prefix }) => isBelow(prefix, path))?.page)
  })
