/**
 * The hosted checkout: the page on which a customer pays, at `/pay/<token>`, and below that the stream of its versions and
 * the look of its shop, whose logo is read from the operator's folder for each request. The token is all that is needed
 * and all that is known of a visitor; it is never logged. Loaded with the first such request.
 */
import { Clock, Effect, Option, Stream } from "effect"
import { readLogo, shopOf } from "./Auth/shops.ts"
import { type CheckoutPageProps, notFoundPage, renderCheckout } from "./Checkout/CheckoutPage.tsx"
import { endedPage, isChoosing, makeChoosing } from "./Checkout/Choosing.tsx"
import { choiceOf, hrefOf, languageOf, type ShopLook } from "./Checkout/languages.ts"
import { piecesAt, RenderedPages } from "./Checkout/RenderedPages.ts"
import { makeReadPayment, type ReadPayment } from "./Checkout/readPayment.ts"
import { askOfView, type CheckoutView, isFinal, versionOf } from "./Checkout/view.ts"
import type { AccountId } from "./Domain/Ids.ts"
import type { Payment } from "./Domain/Payment.ts"
import { contactLink, type Shop } from "./Domain/Shop.ts"
import { Outbox } from "./Events/Outbox.ts"
import { networkOf } from "./Http/clientAddress.ts"
import type { HttpReply } from "./Http/HttpReply.ts"
import { present } from "./lib/Json.ts"
import { themeOf } from "./lib/theme.ts"
import { waitAtMost } from "./lib/waiting.ts"
import { OpenStreams, streamHeaders } from "./Pages/OpenStreams.ts"
import { errorPage, logoReply, lookHeaders } from "./Pages/reply.tsx"
import type { PageRoom } from "./Pages.ts"
import { Settings } from "./Settings.ts"
import { Reader, type StoreUnavailable } from "./Sql.ts"

/**
 * Poll interval of a stream without an event: while confirmations grow, and otherwise for the deadline and a lagging
 * chain. Each poll is a keep-alive too.
 */
const lookInterval = ({ state }: CheckoutView) => (state.kind === "seen" ? "3 seconds" : "15 seconds")

/** A comment, so that proxies and browsers can tell a quiet stream from a dead one. */
const keepAlive = ":\n\n"

interface Shown {
  readonly version: string
  readonly isLast: boolean
}

/** The versions of a payment's page from now on. `client` is counted in `open` until the stream ends. */
export const versionsOf = (
  token: string,
  { id }: Payment,
  client: string,
  read: ReadPayment,
  outbox: Outbox["Type"],
  open: OpenStreams
): Stream.Stream<string> => {
  const follow = Effect.gen(function* () {
    const changed = yield* outbox.listen(id)

    const next = (shown: Shown | undefined): Effect.Effect<Option.Option<readonly [string, Shown]>, StoreUnavailable> =>
      Effect.gen(function* () {
        if (shown?.isLast === true) return Option.none()
        const stored = yield* read.find(token)
        if (stored?.payment === undefined) return Option.none()
        const view = yield* read.view(stored)
        const version = versionOf(view)
        if (version !== shown?.version) {
          return Option.some([`data: ${version}\n\n`, { version, isLast: isFinal(view) }] as const)
        }
        const woken = yield* waitAtMost(changed, lookInterval(view))
        return Option.isSome(woken) ? yield* next(shown) : Option.some([keepAlive, shown] as const)
      })
    return Stream.unfoldEffect(undefined as Shown | undefined, next)
  })
  return open
    .counted(id, client, Stream.unwrapScoped(follow))
    .pipe(
      Stream.catchTag("StoreUnavailable", (error) => Stream.drain(Stream.fromEffect(Effect.logWarning(error.message))))
    )
}

/** The paths below a payment's page. */
type LookPart = "logo" | "theme.css"

/** @param path of the payment's page */
const lookOf = ({ accent, contact, frameOrigins, logo, name, website }: Shop, path: string): ShopLook => ({
  ...present({ name, logo: logo && `${path}/logo`, style: accent && `${path}/theme.css`, website }),
  ...present({ contact: contact && contactLink(contact) }),
  frameAncestors: frameOrigins
})

const makeShopLook = Effect.gen(function* () {
  const reader = yield* Reader
  const settings = yield* Settings

  /** Undefined where it is gone, or has become too large. */
  const imageOf = (account: AccountId, logo: string): Effect.Effect<HttpReply | undefined, StoreUnavailable> =>
    readLogo(account, logo).pipe(
      Effect.provideService(Settings, settings),
      Effect.provideService(Reader, reader),
      Effect.map((bytes) => logoReply(logo, bytes)),
      Effect.catchTag("ShopRefused", ({ message }) =>
        Effect.as(Effect.annotateLogs(Effect.logWarning(message), { account, logo }), undefined)
      )
    )

  /** A part of an account's look; undefined where it has none. */
  const partOf = Effect.fnUntraced(function* (account: AccountId, part: LookPart) {
    const { accent, logo } = yield* shopOf(reader, account)
    if (part === "logo") return logo === undefined ? undefined : yield* imageOf(account, logo)
    const type = { "content-type": "text/css; charset=utf-8" }
    return accent === undefined
      ? undefined
      : { status: 200, headers: { ...lookHeaders, ...type }, text: themeOf(accent) }
  })

  return { partOf }
})

/** The token of a path, and what is asked for below it. */
const pathPattern = /^\/pay\/([^/]+)(?:\/(events|logo|theme\.css|choose))?$/

/** Seconds after which a page may ask for a stream again. */
const retryAfter = "30"

const wrongMethod = (requestId: string, takes: string): HttpReply => {
  const text = { status: 405, title: "Method not allowed", text: `This page takes ${takes}.` }
  const reply = errorPage("checkout", text, requestId)
  return { ...reply, headers: { ...reply.headers, allow: takes } }
}

/** Without a page: only scripts ask for a stream. */
const tooManyStreams: HttpReply = {
  status: 429,
  headers: { "retry-after": retryAfter, "content-type": "text/plain" },
  text: ""
}

/** Nothing more comes: a browser opens no other one after it. */
const noStream: HttpReply = { status: 204, headers: {}, text: "" }

/** Names everything that a page shows: the view by its version. */
const keyOf = ({ view: _, ...shown }: CheckoutPageProps): string => JSON.stringify(shown)

/** Answers the requests below its prefix. @param pages where it keeps those that it has rendered */
export const checkoutWith = Effect.fnUntraced(function* (pages: RenderedPages) {
  const read = yield* makeReadPayment
  const outbox = yield* Outbox
  const looks = yield* makeShopLook
  const customer = yield* makeChoosing
  const streams = new OpenStreams()

  const room: PageRoom = Effect.fnUntraced(function* (request) {
    const { client, headers, method, path, requestId, search } = request
    const query = new URLSearchParams(search)
    const [, token = "", part] = pathPattern.exec(path) ?? []
    const takes = part === "choose" ? "POST" : "GET, HEAD"
    if (!takes.split(", ").includes(method)) return wrongMethod(requestId, takes)
    const stored = yield* read.find(token)
    const { invoice, payment, shop } = stored ?? {}
    const language = languageOf(query.get("lang") ?? invoice?.language ?? null, headers["accept-language"])
    const choice = choiceOf(query)
    const account = (payment ?? invoice)?.account
    if (stored === undefined || account === undefined || shop === undefined) return notFoundPage(language, choice)
    if (part === "logo" || part === "theme.css") {
      return (yield* looks.partOf(account, part)) ?? notFoundPage(language, choice)
    }
    const page = `/pay/${token}`
    if (part === "choose") {
      return invoice === undefined
        ? notFoundPage(language, choice)
        : yield* customer.choose(invoice, page, language, request)
    }
    const shown = { language, choice, look: lookOf(shop, page) }
    const now = yield* Clock.currentTimeMillis
    if (invoice !== undefined && part === undefined && isChoosing(stored, query.has("choose"), now)) {
      const isRateExpired = payment !== undefined && payment.status !== "pending"
      const current = stored.payment === undefined || isRateExpired ? undefined : yield* read.view(stored)
      return yield* customer.show(invoice, { ...shown, isRateExpired, current }, page, now)
    }
    if (stored.payment === undefined) {
      return part === "events" ? noStream : endedPage({ ...shown, invoice: stored.invoice })
    }
    if (part === "events") {
      const network = networkOf(client)
      if (!streams.mayOpen(stored.payment.id, network)) return tooManyStreams
      const rest = versionsOf(token, stored.payment, network, read, outbox, streams)
      return { status: 200, headers: streamHeaders, text: "", rest }
    }
    const view = yield* read.view(stored)
    const changeUrl =
      invoice?.status === "open" && invoice.choices.length > 1 && view.state.kind !== "closing"
        ? `${hrefOf({ language, code: undefined })}&choose`
        : undefined
    const props: CheckoutPageProps = { view, version: versionOf(view), worth: stored.worth, ...shown, changeUrl }
    const { document, headers: pageHeaders } = pages.of(keyOf(props), () => renderCheckout(props))
    return {
      status: 200,
      headers: pageHeaders,
      text: "",
      bytes: piecesAt(document, now, askOfView(view)?.endsAt ?? now, language)
    }
  })
  return room
})

export const makeCheckout = Effect.suspend(() => checkoutWith(new RenderedPages()))
