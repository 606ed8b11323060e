/**
 * One payment: what it is, what happened to it, its exceptions and refunds. An open one can be cancelled; a refund is recorded,
 * its transaction named, or it is dropped, each with a fresh proof of identity.
 */
import { Effect, Either, Predicate, Schema } from "effect"
import type { Settlement } from "../../Chains/ledger/SettlementTag.ts"
import { Chains } from "../../Chains.ts"
import { chainTraits, networkKey } from "../../Domain/Chain.ts"
import { decimalsOn, Fiat } from "../../Domain/Currency.ts"
import type { PaymentException } from "../../Domain/Exception.ts"
import { decimalsOfPayment, isEnded, type Payment } from "../../Domain/Payment.ts"
import type { QuoteObject } from "../../Domain/Quote.ts"
import { type Refund, refundObject } from "../../Domain/Refund.ts"
import { paymentObject } from "../../Events/paymentObject.ts"
import { audited } from "../../Operations/auditLog.ts"
import { seeOther } from "../../Pages/reply.tsx"
import { NameRefundBody, RefundBody } from "../../Payments/decisions/Api.ts"
import { dropOwnRefund, nameOwnRefund, refundPayment } from "../../Payments/decisions/decide.ts"
import { ownRefund } from "../../Payments/decisions/refund.ts"
import { byOwner } from "../../Payments/PaymentsRepo.ts"
import { paymentHistoryOf, type Story } from "../../Payments/paymentHistory.ts"
import { ofPayment as refundsOf } from "../../Payments/RefundsRepo.ts"
import { Payments } from "../../Payments.ts"
import { byId as quoteById } from "../../Quotes/QuotesRepo.ts"
import { localChainIn } from "../../Sandbox/local.ts"
import { payFor } from "../../Sandbox/pay.ts"
import { Settings, type SettingsShape } from "../../Settings.ts"
import { Reader, type Writer } from "../../Sql.ts"
import { aboutOne, actOn, confirmation, framedReply, missing } from "../answers.tsx"
import { Act, blank, type FormState, Onward, PostForm, Select, TextArea, TextField } from "../components/Form.tsx"
import {
  Chain,
  CopyText,
  Facts,
  fiatText,
  Money,
  onChain,
  Status,
  Table,
  Time,
  Unplaced
} from "../components/values.tsx"
import {
  afterDone,
  type Done,
  formRoute,
  type PortalHandler,
  type PortalRoute,
  pageRoute,
  pathOf,
  proofTo
} from "../route.ts"
import { bodyOfForm, givenOf, mayAs, type Viewer } from "../Viewer.ts"
import {
  chainIdOf,
  DecisionForms,
  decisionLabels,
  ExceptionAmount,
  exceptionColumns,
  OpenExceptions,
  PaymentState,
  RefundFields,
  sendItYourself
} from "./exceptionView.tsx"
import { Timeline, type TimelineContext, technicalTimelineOf, timelineOf } from "./timeline.tsx"

const section = "/payments"
const isFiat = Schema.is(Fiat)
/** Receipts and exceptions that are shown at most. */
const mostShown = 100
/** Open exceptions that have their forms here; each has them on its own page too. */
const mostDecided = 5

/** Where the payer pays; undefined where the payment has no page. */
const checkoutUrlOf = (payment: Story["payment"]): string | undefined =>
  Predicate.hasProperty(payment, "checkoutUrl") && Predicate.isString(payment.checkoutUrl)
    ? payment.checkoutUrl
    : undefined

interface PaymentPage {
  readonly viewer: Viewer
  readonly payment: Payment
  readonly story: Story
  /** That it was priced by. */
  readonly quote: QuoteObject | undefined
  readonly exceptions: ReadonlyArray<PaymentException>
  readonly refunds: ReadonlyArray<Refund>
  /** A form of the page that was refused; its id is that of its refund. */
  readonly refused: FormState | undefined
  readonly settings: SettingsShape
  readonly heads: ReadonlyMap<string, number>
}

/** A price and its rate, such as "€12.50 at 1.09 USDC for 1 EUR". */
const priceText = ({ fromAmount, fromCurrency, rate, toCurrency }: QuoteObject): string => {
  const price = isFiat(fromCurrency) ? fiatText(fromAmount, fromCurrency) : `${fromAmount} ${fromCurrency}`
  return `${price} at ${rate} ${toCurrency} for 1 ${fromCurrency}`
}

const PaymentFacts = ({ exceptions, payment, quote, story }: PaymentPage) => {
  const decimals = decimalsOfPayment(payment)
  const money = (amount: bigint | undefined) =>
    amount === undefined ? undefined : <Money amount={amount} currency={payment.currency} decimals={decimals} />
  const { amountRemaining, chainId } = story.payment
  const link = checkoutUrlOf(story.payment)
  return (
    <section class="card" aria-label="The payment">
      <p class="big">
        {money(payment.amount)} <PaymentState of={payment} /> <OpenExceptions of={exceptions} />
      </p>
      <Facts
        of={{
          Reason: payment.failureReason?.replaceAll("_", " "),
          Received:
            payment.amountReceived === undefined ? undefined : (
              <>
                {money(payment.amountReceived)}
                {payment.amountReceived > payment.amount ? (
                  <> ({money(payment.amountReceived - payment.amount)} over)</>
                ) : null}
              </>
            ),
          Missing: amountRemaining === undefined ? undefined : money(BigInt(amountRemaining)),
          Price: quote && priceText(quote),
          "Value when created": payment.usdValue === undefined ? undefined : fiatText(payment.usdValue),
          Chain: <Chain of={payment.chain} />,
          Created: <Time at={payment.createdAt} />,
          ...(payment.confirmedAt === undefined
            ? { Expires: <Time at={payment.expiresAt} /> }
            : { Confirmed: <Time at={payment.confirmedAt} /> }),
          Transaction: onChain("tx", payment.txHash, chainId),
          "Payment link":
            link === undefined ? undefined : (
              <CopyText text={link}>
                <a href={link}>{link}</a>
              </CopyText>
            )
        }}
      />
    </section>
  )
}

/** What a developer asks for: ids, addresses, changes of status and deliveries. */
const Technical = ({ context, payment, story }: PaymentPage & { readonly context: TimelineContext }) => {
  const { chainId, tokenContract } = story.payment
  return (
    <details class="card">
      <summary>Technical</summary>
      <Facts
        of={{
          Reference: payment.merchantRef,
          Id: <CopyText text={payment.id} />,
          "Receiving address": onChain("address", payment.address, chainId),
          "Token contract": onChain("address", tokenContract, chainId),
          "Was to be paid until": payment.confirmedAt === undefined ? undefined : <Time at={payment.expiresAt} />,
          "Webhook URL": payment.webhookUrl === undefined ? undefined : <code>{payment.webhookUrl}</code>,
          "Redirect URL": payment.redirectUrl === undefined ? undefined : <code>{payment.redirectUrl}</code>,
          Quote: payment.quoteId,
          Metadata: payment.metadata === "{}" ? undefined : <pre>{JSON.stringify(story.payment.metadata, null, 2)}</pre>
        }}
      />
      <Timeline entries={technicalTimelineOf(story, context)} />
    </details>
  )
}

/** The chain on which the portal pays a payment for a trial: a local one, of the test mode. */
const localOf = ({ chain, mode }: Payment, { chains }: SettingsShape) =>
  mode === "test" ? localChainIn(chains, chain) : undefined

const Actions = ({ payment, settings, viewer }: PaymentPage) => {
  const isOpen = !isEnded(payment.status)
  if (!mayAs(viewer.role, "admin")) return null
  return (
    <div class="actions no-print">
      {isOpen && localOf(payment, settings) !== undefined ? (
        <PostForm of={blank("simulate")} to={`/payments/${payment.id}/simulate`} submit="Pay it on the local chain">
          <Select name="part" label="Amount" options={Object.entries(parts)} />
        </PostForm>
      ) : null}
      {payment.status === "pending" || payment.status === "expired" ? null : (
        <a href={pathOf(viewer, `/payments/${payment.id}/refund`)}>Record a refund</a>
      )}
      {isOpen ? <a href={pathOf(viewer, `/payments/${payment.id}/cancel`)}>Cancel the payment</a> : null}
    </div>
  )
}

/** Whether its transaction can be named, and it be dropped, by the viewer. */
const mayChange = ({ role }: Viewer, { status }: Refund): boolean =>
  mayAs(role, "admin") && (status === "noted" || status === "not_found")

const OneRefund = ({ of, refused, settings, viewer }: PaymentPage & { readonly of: Refund }) => {
  const { createdAt, from, id, problem, reason, to, txHash } = refundObject(of)
  const chainId = chainIdOf(settings.chains, of)
  const form = refused?.id === id ? refused : blank(id)
  return (
    <section class="card" aria-label={`Refund ${id}`}>
      <p>
        <Money amount={of.amount} currency={of.currency} decimals={decimalsOn(settings.chains, of, of.currency)} />{" "}
        <Status of={of.status} />
      </p>
      <Facts
        of={{
          Problem: problem,
          Receiver: onChain("address", to, chainId),
          "Sent by": onChain("address", from, chainId),
          Transaction: onChain("tx", txHash, chainId),
          Chain: <Chain of={of.chain} />,
          Note: reason,
          Recorded: <Time at={createdAt} />
        }}
      />
      {mayChange(viewer, of) ? (
        <div class="no-print">
          <PostForm of={form} to={`/refunds/${id}`} submit="Name the transaction" labels={decisionLabels}>
            <TextField name="txHash" hint="It is looked up on the chain." />
          </PostForm>
          <Act to={`/refunds/${id}/drop`}>It was not sent: drop it</Act>
        </div>
      ) : null}
    </section>
  )
}

const Page = (page: PaymentPage) => {
  const { exceptions, heads, refunds, settings, story, viewer } = page
  const { chains } = settings
  const context: TimelineContext = {
    ...{ chains, heads },
    deliveryPath: (id) => pathOf(viewer, `/deliveries/${id}`),
    exceptionPath: (id) => pathOf(viewer, `/exceptions/${id}`)
  }
  const undecided = exceptions
    .filter(({ status }) => status === "open" && mayAs(viewer.role, "admin"))
    .slice(0, mostDecided)
  const others = exceptions.filter((exception) => !undecided.includes(exception))
  return (
    <>
      {undecided.map((exception) => (
        <section key={exception.id} class="card needs no-print" aria-labelledby={exception.id}>
          <h2 id={exception.id}>
            <ExceptionAmount of={exception} chains={chains} /> {exception.kind.replaceAll("_", " ")}:{" "}
            {exception.kind === "reorged" ? "what now?" : "keep it, or send it back?"}
          </h2>
          <DecisionForms of={exception} payment={page.payment} chains={chains} />
        </section>
      ))}
      <PaymentFacts {...page} />
      <Actions {...page} />
      {others.length === 0 && !story.moreExceptions ? null : (
        <>
          <h2>Exceptions</h2>
          {others.length === 0 ? null : (
            <Table
              caption="Money of this payment that needs, or needed, a decision"
              columns={exceptionColumns(viewer, chains, () => undefined).filter(({ name }) => name !== "Payment")}
              hrefOf={({ id }) => pathOf(viewer, `/exceptions/${id}`)}
              rows={others}
              keyOf={({ id }) => id}
              empty=""
            />
          )}
          {story.moreExceptions ? (
            <Onward to={`/exceptions?status=all&payment=${page.payment.id}`}>All of its exceptions</Onward>
          ) : null}
        </>
      )}
      {refunds.length === 0 ? null : <h2>Refunds</h2>}
      {refunds.map((refund) => (
        <OneRefund key={refund.id} {...page} of={refund} />
      ))}
      <h2>What happened</h2>
      {story.olderReceipts === 0 ? null : <p class="muted">{story.olderReceipts} older receipts are not shown.</p>}
      {story.totals.map(({ amount, chain, currency, transfers }) => (
        <p class="muted" key={`${chain} ${currency}`}>
          {transfers} transfers that are too small or too many to be credited came to{" "}
          <Money
            amount={BigInt(amount)}
            currency={currency}
            decimals={decimalsOn(chains, { chain, mode: page.payment.mode }, currency)}
          />{" "}
          on {chainTraits[chain].displayName}.
        </p>
      ))}
      <Timeline entries={timelineOf(story, context)} />
      <Technical {...page} context={context} />
    </>
  )
}

type Services = Chains | Payments | Reader | Settings

/** `refused`: a form of it. Of one that is not shown, its problems alone are. */
const paymentPage = Effect.fnUntraced(function* (viewer: Viewer, id: string, refused?: FormState, status = 200) {
  const reader = yield* Reader
  const found = yield* (yield* Payments).get(viewer.owner, id)
  if (found === undefined) return missing(viewer, section, "payment")
  const { exceptions, payment } = found
  const health = yield* (yield* Chains).health
  const heads = new Map(health.flatMap((one) => (one.head === undefined ? [] : [[networkKey(one), one.head] as const])))
  const story = yield* paymentHistoryOf(reader, payment, mostShown)
  const quote = payment.quoteId === undefined ? undefined : yield* quoteById(reader, payment.quoteId)
  const refunds = yield* refundsOf(reader, payment.id)
  const isShown = refunds.some((refund) => refund.id === refused?.id && mayChange(viewer, refund))
  return framedReply(
    viewer,
    {
      ...{ section, title: payment.merchantRef, isLive: true },
      back: { href: pathOf(viewer, section), text: "Payments" }
    },
    <>
      {isShown ? null : <Unplaced of={refused?.problems} />}
      <Page
        viewer={viewer}
        payment={payment}
        story={story}
        quote={quote}
        exceptions={exceptions}
        refunds={refunds}
        refused={refused}
        settings={yield* Settings}
        heads={heads}
      />
    </>,
    status
  )
})

const show: PortalHandler<Services> = (viewer, { params: { id = "" } }) => paymentPage(viewer, id)

const ofPayment = aboutOne(section, "payment", (viewer, id) =>
  Effect.flatMap(Reader, (reader) => byOwner(reader, viewer.owner, id))
)

const confirmCancel = ofPayment((viewer, { id, merchantRef, status }) => {
  const back = `${section}/${id}`
  return confirmation(
    viewer,
    { section, title: "Cancel this payment?", to: `${back}/cancel`, submit: "Cancel the payment", back },
    <p>
      {merchantRef} ends now, and its page asks for nothing any more.
      {status === "detecting" ? " Money has come for it: that becomes an exception, to decide on." : ""} Its address
      stays watched: money that still comes becomes an exception too. This cannot be undone.
    </p>
  )
})

const cancel = ofPayment<Services | Writer>((viewer, { id }) =>
  Effect.flatMap(Payments, (payments) =>
    actOn(
      viewer,
      Either.right(id),
      (_, { actor }) =>
        audited(actor, { act: "payments cancel", detail: { id } }, () => payments.cancel(viewer.owner, id)),
      {
        done: () => seeOther(afterDone(viewer, `/payments/${id}`, "cancelled")),
        refused: (problems) => paymentPage(viewer, id, { ...blank("cancel"), problems }, 409)
      }
    )
  )
)

/** How much a trial pays. */
const parts = { all: "all that is missing", half: "half of what is missing", more: "a tenth too much" } as const

/** Pays a payment on its local chain. `tilld sandbox pay` pays with another token, or on another chain. */
const simulate = ofPayment<Services | Writer>((viewer, payment, form) =>
  Effect.flatMap(Settings, (settings) => {
    const chain = localOf(payment, settings)
    if (chain === undefined) return Effect.succeed(missing(viewer, section, "payment on a local chain"))
    const { currency, id } = payment
    const part = (["half", "more"] as const).find((each) => each === form.get("part"))
    const sending = { part, chain, currency, confirmations: chain.confirmations, networks: settings.chains }
    return actOn(
      viewer,
      Either.right({ act: "sandbox pay", detail: { payment: id, chain: chain.name, currency, part } }),
      (act, { actor }) =>
        Effect.scoped(audited(actor, act, () => payFor({ ...sending, payment: paymentObject(payment, settings) }))),
      {
        done: () => donePage(viewer, id, "simulated"),
        refused: (problems, status) => paymentPage(viewer, id, { ...blank("simulate"), problems }, status)
      }
    )
  })
)

const refundForm = (viewer: Viewer, { currency, id, merchantRef }: Payment, form: FormState, status = 200) => {
  return framedReply(
    viewer,
    { section, title: "Record a refund" },
    <>
      <p>
        What goes back of {merchantRef} counts no more: while it is open, it asks for the money again; once it is
        confirmed, it stays so. Send it {sendItYourself}
      </p>
      <p>
        Or name the receiver, and no transaction: the operator’s <code>tilld sweep plan --refund</code> sends it there (
        <a href="/guide/collect">how</a>).
      </p>
      <RefundFields
        of={form}
        to={`/payments/${id}/refund`}
        amountHint={`How much goes back, in ${currency}: of open exceptions first, then of what counts.`}
      >
        <TextField name="to" hint="The address that gets it (optional)." />
        <TextArea
          name="reason"
          label="Note (optional)"
          hint="Kept with the refund, and shown to everybody who sees the payment."
          rows={2}
        />
      </RefundFields>
      <Onward to={`/payments/${id}`}>Back to the payment</Onward>
    </>,
    status
  )
}

const openRefund = ofPayment((viewer, payment) => refundForm(viewer, payment, blank("refund")))

/** What an account has, has a payment. */
const ofRefund = aboutOne(section, "refund", (viewer, id) =>
  Effect.flatMap(Reader, (reader) => ownRefund(reader, viewer.owner, id))
)

const donePage = (viewer: Viewer, payment: string, done: Done) =>
  seeOther(afterDone(viewer, `${section}/${payment}`, done))

const refund = ofPayment<Settings | Settlement | Writer>((viewer, payment, form) =>
  Effect.flatMap(Settings, ({ chains }) => {
    const { chain, currency, id } = payment
    // Named, since the amount was typed in this currency: money of another one is sent back on its exception's page.
    const fields = { ...givenOf(form), chain, currency }
    return actOn(
      viewer,
      bodyOfForm(RefundBody, fields, decimalsOn(chains, payment, currency) ?? 0),
      (body, { actor }) => refundPayment(actor, viewer.owner, id, body),
      {
        done: () => donePage(viewer, id, "refunded"),
        refused: (problems, status) => refundForm(viewer, payment, { id: "refund", typed: form, problems }, status)
      }
    )
  })
)

/** The payment's page, with what is wrong with a form of it. */
const refusedOn =
  (viewer: Viewer, payment: string, id: string, form: URLSearchParams) =>
  (problems: FormState["problems"], status: number) =>
    paymentPage(viewer, payment, { id, typed: form, problems }, status)

const name = ofRefund<Services | Settlement | Writer>((viewer, { id, payment = "" }, form) =>
  actOn(
    viewer,
    bodyOfForm(NameRefundBody, givenOf(form), 0),
    ({ txHash }, { actor }) => nameOwnRefund(actor, viewer.owner, id, txHash),
    { done: () => donePage(viewer, payment, "named"), refused: refusedOn(viewer, payment, id, form) }
  )
)

const drop = ofRefund<Services | Settlement | Writer>((viewer, { id, payment = "" }, form) =>
  actOn(viewer, Either.right(id), (_, { actor }) => dropOwnRefund(actor, viewer.owner, id), {
    done: () => donePage(viewer, payment, "dropped"),
    refused: refusedOn(viewer, payment, id, form)
  })
)

export const paymentRoutes: ReadonlyArray<PortalRoute<Services | Settlement | Writer>> = [
  pageRoute("/payments/:id", "viewer", show),
  pageRoute("/payments/:id/cancel", "admin", confirmCancel),
  formRoute("/payments/:id/simulate", "admin", simulate),
  formRoute("/payments/:id/cancel", "admin", cancel, proofTo("cancel a payment")),
  pageRoute("/payments/:id/refund", "admin", openRefund),
  formRoute("/payments/:id/refund", "admin", refund, proofTo("record a refund")),
  formRoute("/refunds/:id", "admin", name, proofTo("name the transaction of a refund")),
  formRoute("/refunds/:id/drop", "admin", drop, proofTo("drop a refund"))
]
