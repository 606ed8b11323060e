/**
 * The page on which a customer names the address for a refund, once: whoever has its link may. What is named becomes a refund of the
 * books, which a person pays. It goes back as what was paid: the same token on the same network.
 */
import { Data, Effect } from "effect"
import { formatUnits, zeroAddress } from "viem"
import { shopOf } from "../Auth/shops.ts"
import { toChecksummed } from "../Domain/Address.ts"
import { chainTraits } from "../Domain/Chain.ts"
import { decimalsOfPayment, type Payment } from "../Domain/Payment.ts"
import type { Refund } from "../Domain/Refund.ts"
import { audited } from "../Operations/auditLog.ts"
import { assets } from "../Pages/assets.ts"
import { Document, pageReply } from "../Pages/reply.tsx"
import { noteRefund } from "../Payments/decisions/refund.ts"
import * as Payments from "../Payments/PaymentsRepo.ts"
import * as Refunds from "../Payments/RefundsRepo.ts"
import { Settings, type SettingsShape } from "../Settings.ts"
import { Reader, StoreUnavailable } from "../Sql.ts"
import { type PullPayment, pullPayment, setRefund } from "./pullPayments.ts"

/** Another request has named an address meanwhile. */
class AskedBefore extends Data.TaggedError("AskedBefore") {}

const cannot = "The shop cannot send this any more, or an address was named a moment ago: ask the shop."

interface Shown {
  readonly shop: string
  readonly pull: PullPayment
  readonly payment: Payment
  readonly refund: Refund | undefined
  readonly given: string
  readonly problem: string | undefined
}

const typed = { required: true, maxLength: 100, autocomplete: "off", spellcheck: false, "aria-describedby": "rule" }
const alert = { role: "alert", class: "notice" } as const

const stateOf = ({ status, txHash }: Refund): string =>
  status === "final"
    ? `It was sent, and is final: ${txHash}.`
    : status === "seen"
      ? `It was sent, and waits for confirmations: ${txHash}.`
      : status === "failed"
        ? "The shop does not send it: ask the shop."
        : "The shop sends it by hand: this page shows the transaction then."

const RefundPage = ({ given, payment, problem, pull, refund, shop }: Shown) => {
  const what = `${formatUnits(pull.units, decimalsOfPayment(payment))} ${payment.currency}`
  const network = chainTraits[payment.chain].displayName
  const title = `Refund of ${what}`
  return (
    <Document lang="en" title={title} assets={assets().urls("checkout")}>
      <main>
        {payment.mode === "test" && <p class="test">A test: no real money.</p>}
        <h1>{title}</h1>
        <p>
          {shop} sends you {what} on {network}, for {pull.amount} {pull.currency}. {pull.name}
        </p>
        {pull.description !== pull.name && <p>{pull.description}</p>}
        {refund === undefined ? (
          <form method="post">
            <p>
              <label for="address">
                Your address for {payment.currency} on {network}
              </label>
            </p>
            <p>
              <input id="address" name="address" value={given} aria-invalid={problem !== undefined} {...typed} />
            </p>
            <p id="rule" {...(problem === undefined ? {} : alert)}>
              {problem ?? `It must take ${payment.currency} on ${network}: what is sent to a wrong address is lost.`}
            </p>
            <button type="submit" class="button primary">
              Ask for the refund
            </button>
          </form>
        ) : (
          <>
            <p>
              It goes to <code>{refund.to && toChecksummed(refund.to)}</code>.
            </p>
            <p>{stateOf(refund)}</p>
          </>
        )}
      </main>
    </Document>
  )
}

/** Why money cannot go to an address; its EIP-55 form where it can. */
const addressFor = Effect.fnUntraced(function* (text: string, { chains }: Pick<SettingsShape, "chains">) {
  const address = toChecksummed(text)
  if (address === undefined) {
    const isTyped = /^0x[0-9a-f]{40}$/i.test(text)
    const what = isTyped ? "Its capitals do not match" : "That is no address, 0x and 40 digits of 0 to 9 and a to f"
    return { problem: `${what}: copy it from your wallet again.` }
  }
  const lower = address.toLowerCase()
  const isContract = chains.some(({ tokens }) => tokens.some((token) => token.address.toLowerCase() === lower))
  if (address === zeroAddress || isContract)
    return { problem: "That is the address of a token: nobody can spend what is sent there." }
  const isOurs = (yield* Refunds.walletIndexOf(yield* Reader, address)) !== undefined
  return isOurs ? { problem: "That is an address of the shop: name one of your own wallet." } : { address: lower }
})

/** Answers `/pull-payments/ID`; undefined where there is none. `form`: what was posted. */
export const refundPage = Effect.fnUntraced(function* (id: string, form: URLSearchParams | undefined) {
  const reader = yield* Reader
  const settings = yield* Settings
  const pull = yield* pullPayment(reader, id)
  const payment = pull && (yield* Payments.byId(reader, pull.payment))
  if (pull === undefined || payment === undefined) return undefined
  const { name = "The shop" } = yield* shopOf(reader, pull.account)
  const before = pull.refund && (yield* Refunds.byId(reader, pull.refund))
  const page = (refund: Refund | undefined, given = "", problem?: string) =>
    pageReply(<RefundPage {...{ given, payment, problem, pull, refund, shop: name }} />, {
      status: problem === undefined ? 200 : 400
    })
  if (before !== undefined) return page(before)
  if (form === undefined) return page(undefined)
  const given = (form.get("address") ?? "").trim()
  const { address, problem } = yield* addressFor(given, settings)
  if (address === undefined) return page(undefined, given, problem)
  const { units: amount } = pull
  const request = { amount, chain: payment.chain, currency: payment.currency, to: address, note: pull.name }
  const owner = { account: pull.account, mode: pull.mode }
  const act = { act: "payments refunded", detail: { id: payment.id, amount: `${amount}`, to: address, pull: id } }
  const asked = audited({ via: "api", who: id, owner }, act, () =>
    noteRefund(payment.id, owner, request, ({ refund }) =>
      Effect.flatMap(setRefund(id, refund.id), (isFirst) => (isFirst ? Effect.void : new AskedBefore()))
    )
  )
  return yield* Effect.matchEffect(asked, {
    onFailure: (error) => (error instanceof StoreUnavailable ? error : Effect.succeed(page(undefined, given, cannot))),
    onSuccess: (made) => Effect.succeed(page(made?.refund, given))
  })
})
