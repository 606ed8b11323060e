/** What happened to a payment, in order: its creation, money, changes of status, events and their deliveries. */
import type { ComponentChildren } from "preact"
import { chainTraits, type Network, networkKey } from "../../Domain/Chain.ts"
import { decimalsOn } from "../../Domain/Currency.ts"
import { type Story, whyUncounted } from "../../Payments/paymentHistory.ts"
import type { SettingsShape } from "../../Settings.ts"
import { Money, OnChain, Status, statusTones, Time, type Tone } from "../components/values.tsx"

/** What a timeline depends on besides the payment's history. */
export interface TimelineContext {
  readonly chains: SettingsShape["chains"]
  /** The number of the newest block that was read, by `networkKey`. */
  readonly heads: ReadonlyMap<string, number>
  /** The page of a delivery. */
  readonly deliveryPath: (id: string) => string
  /** The page of an exception. */
  readonly exceptionPath: (id: string) => string
}

interface Entry {
  /** ISO 8601, so that the order of texts is that of time. */
  readonly at: string
  readonly key: string
  readonly tone: Tone
  readonly text: ComponentChildren
}

type ReceiptView = Story["receipts"][number]

const chainOf = ({ chains }: TimelineContext, network: Network) =>
  chains.find((one) => networkKey(one) === networkKey(network))

/** `7 of 12 confirmations`, and only their number once there are enough. */
const confirmationsText = (block: number, head: number | undefined, needed: number | undefined): string => {
  if (head === undefined) return `block ${block}`
  const count = Math.max(0, head - block + 1)
  return needed !== undefined && count < needed
    ? `${count} of ${needed} confirmations`
    : `${count} ${count === 1 ? "confirmation" : "confirmations"}`
}

const receiptState = (receipt: ReceiptView, context: TimelineContext, network: Network): string => {
  if (!receipt.canonical) return `which does not count: ${whyUncounted(receipt)}`
  const count = confirmationsText(
    receipt.blockNumber,
    context.heads.get(networkKey(network)),
    chainOf(context, network)?.confirmations
  )
  if (receipt.corroborated) return count
  return `${count}; a second provider has not shown it${receipt.deniedBy === undefined ? " yet" : `: ${receipt.deniedBy} does not have it`}`
}

const receiptEntry = (receipt: ReceiptView, story: Story, context: TimelineContext): Entry => {
  const network = { chain: receipt.chain, mode: story.payment.mode }
  return {
    at: receipt.blockTime,
    key: `receipt ${receipt.chain} ${receipt.blockHash} ${receipt.position}`,
    tone: receipt.canonical ? "warning" : "bad",
    text: (
      <>
        <Money
          amount={BigInt(receipt.amount)}
          currency={receipt.currency}
          decimals={decimalsOn(context.chains, network, receipt.currency)}
        />{" "}
        came on {chainTraits[receipt.chain].displayName}
        {receipt.txHash === undefined ? (
          " in a transaction that no provider can name"
        ) : (
          <>
            {" "}
            in <OnChain kind="tx" value={receipt.txHash} chainId={chainOf(context, network)?.chainId} short />
          </>
        )}
        , {receiptState(receipt, context, network)}
      </>
    )
  }
}

const tones: Readonly<Record<string, Tone>> = {
  confirmed: "good",
  detecting: "info",
  expired: "neutral",
  failed: "bad"
}

type ExceptionView = Story["exceptions"][number]

/** What became of an exception: its parts that were sent back, and the decision. */
const exceptionEntries = (exception: ExceptionView, context: TimelineContext): ReadonlyArray<Entry> => {
  const {
    amount,
    amountRefunded = "0",
    chain,
    currency,
    detectedAt,
    id,
    kind,
    mode,
    refunds = [],
    resolution
  } = exception
  const decimals = decimalsOn(context.chains, { chain, mode }, currency)
  const money = (units: string | bigint) => <Money amount={BigInt(units)} currency={currency} decimals={decimals} />
  const link = <a href={context.exceptionPath(id)}>{kind.replaceAll("_", " ")}</a>
  const came = BigInt(amount) + BigInt(amountRefunded)
  return [
    {
      at: detectedAt,
      key: id,
      tone: "warning",
      text: (
        <>
          {money(came)} became an exception: {link}
        </>
      )
    },
    ...refunds.map(
      (refund, place): Entry => ({
        at: refund.refundedAt,
        key: `${id} refund ${place}`,
        tone: "neutral",
        text: <>{money(refund.amount)} of it noted as sent back</>
      })
    ),
    ...(resolution === "accepted" && exception.resolvedAt !== undefined
      ? [
          {
            at: exception.resolvedAt,
            key: `${id} accepted`,
            tone: "good" as const,
            text: <>{money(amount)} accepted</>
          }
        ]
      : [])
  ]
}

type DeliveryView = Story["deliveries"][number]

const lastAttempt = ({ attempts }: DeliveryView): string => {
  const last = attempts.at(-1)
  if (last === undefined) return "not attempted yet"
  return last.status === undefined ? (last.error ?? "no answer") : `answered with ${last.status}`
}

const statusOfDelivery = ({ attempts, status }: DeliveryView): string =>
  status === "pending" && attempts.length > 0 ? "failing" : status

const deliveryEntry = (delivery: DeliveryView, { deliveryPath }: TimelineContext): Entry => ({
  at: delivery.attempts.at(-1)?.startedAt ?? delivery.createdAt,
  key: delivery.id,
  tone: statusTones[statusOfDelivery(delivery)] ?? "neutral",
  text: (
    <>
      <a href={deliveryPath(delivery.id)}>{delivery.kind}</a> to <code>{delivery.url}</code>:{" "}
      <Status of={statusOfDelivery(delivery)} /> {lastAttempt(delivery)}
    </>
  )
})

const inOrder = (entries: ReadonlyArray<Entry>) => entries.toSorted((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0))

/** What became of a payment's money, oldest first. Of the same moment, causes come before what they cause. */
export const timelineOf = (story: Story, context: TimelineContext): ReadonlyArray<Entry> =>
  inOrder([
    // A block has whole seconds: money of the same second came after.
    {
      at: story.payment.createdAt.replace(/\.\d+/, ".000"),
      key: "created",
      tone: "neutral" as const,
      text: "The payment was created"
    },
    ...story.receipts.map((receipt) => receiptEntry(receipt, story, context)),
    ...story.exceptions.flatMap((exception) => exceptionEntries(exception, context))
  ])

/** Its changes of status, and the deliveries that told of them. */
export const technicalTimelineOf = (story: Story, context: TimelineContext): ReadonlyArray<Entry> =>
  inOrder([
    ...story.transitions.map(
      ({ at, from, to }, place): Entry => ({
        at,
        key: `transition ${place}`,
        tone: tones[to] ?? "neutral",
        text: (
          <>
            <Status of={from} /> became <Status of={to} />
          </>
        )
      })
    ),
    ...story.deliveries.map((delivery) => deliveryEntry(delivery, context))
  ])

export const Timeline = ({ entries }: { readonly entries: ReadonlyArray<Entry> }) => (
  <ol class="timeline">
    {entries.map(({ at, key, text, tone }) => (
      <li key={key} class={tone}>
        <Time at={at} />
        <div>{text}</div>
      </li>
    ))}
  </ol>
)
