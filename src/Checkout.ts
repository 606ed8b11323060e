/**
 * The hosted checkout: the page on which a customer pays, at `/pay/<token>`, and below that the stream of its versions and
 * the look of its shop. The
 * token is all that is needed and all that is known of a visitor; it is never logged. Loaded with the first such request.
 */
import { Clock, Effect } from "effect"
import { type CheckoutPageProps, notFoundPage, renderCheckout } from "./Checkout/CheckoutPage.tsx"
import { choiceOf } from "./Checkout/choice.ts"
import { languageOf } from "./Checkout/languages.ts"
import { piecesAt } from "./Checkout/moment.ts"
import { RenderedPages } from "./Checkout/RenderedPages.ts"
import { makeReadPayment } from "./Checkout/readPayment.ts"
import { lookOf, makeShopLook } from "./Checkout/shopLook.ts"
import { versionsOf } from "./Checkout/versions.ts"
import { askOfView, versionOf } from "./Checkout/view.ts"
import { Outbox } from "./Events/Outbox.ts"
import { networkOf } from "./Http/clientAddress.ts"
import type { HttpReply } from "./Http/HttpReply.ts"
import { errorPage } from "./Pages/ErrorPage.tsx"
import { OpenStreams, streamHeaders } from "./Pages/OpenStreams.ts"
import type { PageRoom } from "./Pages.ts"

/** The token of a path, and what is asked for below it. */
const pathPattern = /^\/pay\/([^/]+)(?:\/(events|logo|theme\.css))?$/

const takes = "GET, HEAD"

/** Seconds after which a page may ask for a stream again. */
const retryAfter = "30"

const wrongMethod = (requestId: string): HttpReply => {
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

/** Names everything that a page shows: the view by its version. */
const keyOf = ({ view: _, ...shown }: CheckoutPageProps): string => JSON.stringify(shown)

/** Answers the requests below its prefix. @param pages where it keeps those that it has rendered */
export const checkoutWith = Effect.fnUntraced(function* (pages: RenderedPages) {
  const read = yield* makeReadPayment
  const outbox = yield* Outbox
  const looks = yield* makeShopLook
  const streams = new OpenStreams()

  const room: PageRoom = Effect.fnUntraced(function* (request) {
    const { client, headers, method, path, requestId, search } = request
    const query = new URLSearchParams(search)
    const language = languageOf(query.get("lang"), headers["accept-language"])
    if (method !== "GET" && method !== "HEAD") return wrongMethod(requestId)
    const [, token = "", part] = pathPattern.exec(path) ?? []
    const stored = yield* read.find(token)
    if (stored === undefined) return notFoundPage(language, choiceOf(query))
    const { payment, shop, worth } = stored
    if (part === "logo" || part === "theme.css") {
      return (yield* looks.partOf(payment.account, part)) ?? notFoundPage(language, choiceOf(query))
    }
    if (part === "events") {
      const network = networkOf(client)
      if (!streams.mayOpen(payment.id, network)) return tooManyStreams
      const rest = versionsOf(token, payment, network, read, outbox, streams)
      return { status: 200, headers: streamHeaders, text: "", rest }
    }
    const view = yield* read.view(stored)
    const now = yield* Clock.currentTimeMillis
    const ask = askOfView(view)
    const props: CheckoutPageProps = {
      view,
      version: versionOf(view),
      worth,
      language,
      choice: choiceOf(query),
      look: lookOf(shop, path)
    }
    const { document, headers: pageHeaders } = pages.of(keyOf(props), () => renderCheckout(props))
    return {
      status: 200,
      headers: pageHeaders,
      text: "",
      bytes: piecesAt(document, now, ask ?? { startsAt: now, endsAt: now }, language)
    }
  })
  return room
})

export const makeCheckout = Effect.suspend(() => checkoutWith(new RenderedPages()))
