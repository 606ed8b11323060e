/**
 * The choice of an invoice's customer: whether the page asks for it, what it offers, and what a posted choice does. A choice
 * makes the payment, and leads back to the page, which then says what to pay.
 */
import { Effect, Schema } from "effect"
import { formatUnits } from "viem"
import { decimalsOf, decimalsOn } from "../Domain/Currency.ts"
import { ChoiceName, chosenBy, type Invoice } from "../Domain/Invoice.ts"
import type { HttpReply } from "../Http/HttpReply.ts"
import type { PageRequest } from "../Http/PageHandler.ts"
import { Invoices } from "../Invoices.ts"
import { errorPage, seeOther } from "../Pages/reply.tsx"
import { Settings } from "../Settings.ts"
import type { StoreUnavailable } from "../Sql.ts"
import { type ChoosingProps, renderChoosing } from "./Choosing.tsx"
import { checkoutTexts, type Language } from "./languages.ts"
import { piecesAt } from "./RenderedPages.ts"
import type { Stored, Unchosen } from "./readPayment.ts"

type Shown = Pick<ChoosingProps, "choice" | "language" | "look">

/**
 * Whether the page asks for a choice: nothing was chosen yet, or the rate of the last choice has expired without money, or
 * the customer goes back to it while nothing was seen. `now` in Unix milliseconds.
 */
export const isChoosing = ({ invoice, payment }: Stored | Unchosen, goesBack: boolean, now: number): boolean =>
  invoice?.status === "open" &&
  now < invoice.expiresAt &&
  (payment?.status !== "pending" || (goesBack && now < payment.expiresAt))

const isChoice = Schema.is(ChoiceName)

export const makeChoosing = Effect.gen(function* () {
  const invoices = yield* Invoices
  const { chains } = yield* Settings

  /** `page`: its path. */
  const show = Effect.fnUntraced(function* (
    invoice: Invoice,
    shown: Shown & Pick<ChoosingProps, "isRateExpired">,
    page: string,
    now: number
  ) {
    const { createdAt, expiresAt, mode, price } = invoice
    const offers = (yield* invoices.offers(invoice)).map(({ chain, currency, fee, units }) => {
      const decimals = decimalsOn(chains, { chain, mode }, currency) ?? decimalsOf[currency]
      return { chain, currency, fee, amount: units === undefined ? undefined : formatUnits(units, decimals) }
    })
    const { document, headers } = renderChoosing({
      ...{ ...shown, offers, price, mode, startsAt: createdAt, endsAt: expiresAt },
      action: `${page}/choose?lang=${shown.language}`
    })
    return {
      status: 200,
      headers,
      text: "",
      bytes: piecesAt(document, now, expiresAt, shown.language)
    } satisfies HttpReply
  })

  const choose = (
    { account, id, mode }: Invoice,
    page: string,
    language: Language,
    { body, requestId }: Pick<PageRequest, "body" | "requestId">
  ): Effect.Effect<HttpReply, StoreUnavailable> => {
    const choice = new URLSearchParams(body?.toString("utf8") ?? "").get("choice")
    const back = `${page}?lang=${language}`
    const again = Effect.succeed(seeOther(`${back}&choose`))
    if (!isChoice(choice)) return again
    return invoices.choose({ account, mode }, id, chosenBy(choice)).pipe(
      Effect.as(seeOther(back)),
      Effect.catchAll((error) => {
        switch (error._tag) {
          case "StoreUnavailable":
            return error
          case "InvoiceNotOpen":
            return Effect.succeed(seeOther(back))
          case "ChoiceUnpriced":
          case "NotAChoice":
            return again
          default: {
            const { headline, unavailable } = checkoutTexts[language]
            const text = { lang: language, status: 503, title: headline.unavailable, text: unavailable }
            return Effect.as(
              Effect.logWarning("a customer's choice could not be made", error._tag),
              errorPage("checkout", text, requestId)
            )
          }
        }
      })
    )
  }

  return { show, choose }
})
