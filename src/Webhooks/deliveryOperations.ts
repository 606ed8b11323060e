/** What an operator does with deliveries: look at them, send them again, send an endpoint a test. */
import { Clock, Effect, Schema } from "effect"
import { mustExist } from "../Auth/accountOperations.ts"
import { type Owner, QuotaExceeded, UnknownAccount } from "../Domain/Account.ts"
import { Mode, modes } from "../Domain/Chain.ts"
import { DeliveryFilter, DeliveryStatus, OperatorDelivery } from "../Domain/DeliveryObject.ts"
import { PaymentId } from "../Domain/Ids.ts"
import { SecretUnreadable } from "../Domain/SecretErrors.ts"
import { alternatives, must } from "../lib/annotations.ts"
import { defaultPageSize } from "../lib/parameters.ts"
import {
  AccountField,
  MomentField,
  maybe,
  momentAt,
  momentText,
  NotFound,
  otherwise,
  pageFields,
  SomeMode
} from "../Operations/inputFields.ts"
import { type Caller, operation, withFlag } from "../Operations/operation.ts"
import { Reader, Tx } from "../Sql/Db.ts"
import { sendTest } from "./Dispatcher.ts"
import type { Selection } from "./queue/DeliveryLogRepo.ts"
import * as DeliveryLogRepo from "./queue/DeliveryLogRepo.ts"
import * as EndpointsRepo from "./queue/EndpointsRepo.ts"
import { redeliver, redeliverPage } from "./queue/redelivery.ts"

/** A delivery that cannot be sent again. Nothing was ordered. */
export class RedeliveryRefused extends Schema.TaggedError<RedeliveryRefused>()("RedeliveryRefused", {
  message: Schema.String
}) {}

const noEndpoint = (id: string) =>
  new NotFound({ message: `There is no endpoint ${id}: tilld webhooks endpoints names those of an account` })

const noDelivery = (id: string) =>
  new NotFound({ message: `There is no delivery ${id}: tilld webhooks list, or payments show, names them` })

const SomeFilter = must(`be ${alternatives(DeliveryFilter.literals)}`, DeliveryFilter)

const range = {
  account: AccountField,
  mode: SomeMode,
  endpoint: withFlag(maybe(Schema.String), { about: "Only those of this endpoint, wh_…, of any account", value: "ID" }),
  payment: withFlag(maybe(PaymentId), { about: "Only those of this payment, pay_…", value: "ID" })
}

const until = withFlag(maybe(MomentField), { about: "Of events made before this time; otherwise now", value: "TIME" })

const sinceFlag = {
  about: "Of events made at this time or later: 2026-01-31T12:00:00Z, 2026-01-31, or 24h for so long ago",
  value: "TIME"
}

/** A time of a list or a range. */
export const eventsSince = withFlag(maybe(MomentField), sinceFlag)

const id = withFlag(Schema.String, {
  about: "The delivery, dlv_…, as tilld webhooks list and payments show have it",
  value: "ID",
  isArgument: true
})

/** The endpoint if one is given, for an operator of any account; otherwise the account in each of the modes. */
const selected = Effect.fnUntraced(function* (
  { isOperator }: Caller,
  account: Owner["account"],
  modes: ReadonlyArray<Mode>,
  endpoint: string | undefined
) {
  if (endpoint === undefined) return modes.map((mode) => ({ owner: { account, mode }, endpoint }))
  const found = yield* EndpointsRepo.ownerOf(yield* Reader, endpoint)
  if (found === undefined || !(isOperator || found.owner.account === account)) return yield* noEndpoint(endpoint)
  return modes.includes(found.owner.mode) ? [found] : []
})

export const listDeliveries = operation({
  name: "webhooks list",
  summary: "Show deliveries, newest first",
  input: {
    ...range,
    status: withFlag(maybe(SomeFilter), {
      about: "Only deliveries in this state; failing: tried, and not arrived; otherwise all"
    }),
    since: eventsSince,
    until,
    ...pageFields("deliveries", defaultPageSize)
  },
  output: Schema.Array(OperatorDelivery),
  refusals: [UnknownAccount, NotFound],
  run: Effect.fnUntraced(function* ({ account, after, endpoint, limit, mode, payment, since, status, until }, caller) {
    yield* mustExist(account)
    const reader = yield* Reader
    const now = yield* Clock.currentTimeMillis
    const last = after === undefined ? undefined : yield* DeliveryLogRepo.byId(reader, after)
    if (after !== undefined && last === undefined) return yield* noDelivery(after)
    const times = {
      since: since === undefined ? 0 : momentAt(since, now),
      until: until === undefined ? Number.MAX_SAFE_INTEGER : momentAt(until, now)
    }
    const whose = yield* selected(caller, account, mode === undefined ? modes : [mode], endpoint)
    const statuses = status === undefined ? DeliveryStatus.literals : [status]
    const selections = whose.flatMap((each) =>
      statuses.map((status): Selection => ({ ...each, ...times, payment, status, plugins: true }))
    )
    return (yield* DeliveryLogRepo.list(reader, selections, limit, last)).map(DeliveryLogRepo.operatorDelivery)
  })
})

export const showDelivery = operation({
  name: "webhooks show",
  summary: "Show a delivery with its attempts",
  input: { id },
  output: OperatorDelivery,
  refusals: [NotFound],
  run: Effect.fnUntraced(function* ({ id }) {
    const delivery = yield* DeliveryLogRepo.byId(yield* Reader, id)
    return delivery === undefined ? yield* noDelivery(id) : DeliveryLogRepo.operatorDelivery(delivery)
  })
})

const to = withFlag(maybe(Schema.String), {
  about: "Send to this endpoint, wh_…, of the same account and mode, not where they went",
  value: "ENDPOINT"
})

/** Finds the endpoint that `to` names, which must belong to the owner of what is sent there. */
const targetOf = Effect.fnUntraced(function* (to: string | undefined, { account, mode }: Owner) {
  if (to === undefined) return undefined
  const endpoint = yield* EndpointsRepo.byId(yield* Tx, to)
  if (endpoint === undefined) return yield* noEndpoint(to)
  if (endpoint.account === account && endpoint.mode === mode) return endpoint
  return yield* new RedeliveryRefused({
    message: `${to} is an endpoint of account ${endpoint.account}, mode ${endpoint.mode}: what is to be sent there is of account ${account}, mode ${mode}`
  })
})

/** `due`: an attempt is due or waiting already, and nothing was added. */
const Ordered = Schema.Struct({
  id: Schema.String,
  result: Schema.Literal("ordered", "due"),
  /** The attempts that it had by then: the one that was ordered comes after these. */
  attemptsMade: Schema.Int
})

export const redeliverOne = operation({
  name: "webhooks redeliver",
  summary: "Send deliveries again: the same id and bytes, in addition to the retries; a success ends these",
  input: { id, to },
  output: Ordered,
  refusals: [NotFound, RedeliveryRefused, QuotaExceeded],
  audit: ({ id: delivery, to }) => ({ delivery, to }),
  run: Effect.fnUntraced(function* ({ id, to }) {
    const delivery = yield* DeliveryLogRepo.byId(yield* Reader, id)
    if (delivery === undefined) return yield* noDelivery(id)
    const ordered = yield* redeliver(delivery, id, targetOf(to, delivery))
    if (ordered === undefined) return yield* noDelivery(id)
    const { attemptsMade, id: sent, result } = ordered
    if (result !== "refused") return { id: sent, result, attemptsMade }
    return yield* new RedeliveryRefused({
      message:
        to === undefined
          ? `${id} cannot be sent again where it went: its endpoint was deleted or disabled. Name another one to send to`
          : `${to} does not name the kind of the event that ${id} delivers: tilld webhooks change ${to} --events`
    })
  })
})

/** Where the next page of a range begins: a text such as `test.1769860800000.38`, for every way in. */
export const RangePlace = Schema.transform(
  must("be `next` of the page before", Schema.String.pipe(Schema.pattern(/^(live|test)\.\d{1,15}\.\d{1,15}$/))),
  Schema.Struct({ mode: Mode, createdAt: Schema.Number, sequence: Schema.Number }),
  {
    strict: true,
    decode: (text) => {
      const [mode, createdAt, sequence] = text.split(".")
      return {
        mode: mode === "live" ? ("live" as const) : ("test" as const),
        createdAt: Number(createdAt),
        sequence: Number(sequence)
      }
    },
    encode: ({ createdAt, mode, sequence }) => `${mode}.${createdAt}.${sequence}`
  }
).annotations({ description: "Where the page begins: `next` of the page before; absent for the first page" })

export const redeliverRange = operation({
  name: "webhooks redeliver range",
  summary: "Send one page of a range of deliveries again, oldest first: the next one begins at `next`",
  input: {
    ...range,
    status: withFlag(
      otherwise(SomeFilter, () => "failing" as const),
      { about: "The state they are in; otherwise failing: tried, and not arrived" }
    ),
    since: withFlag(MomentField, sinceFlag),
    until,
    to,
    after: maybe(RangePlace)
  },
  output: Schema.Struct({ ordered: Schema.Int, due: Schema.Int, refused: Schema.Int, next: maybe(RangePlace) }),
  refusals: [UnknownAccount, NotFound, RedeliveryRefused, QuotaExceeded],
  audit: ({ account, after, endpoint, mode, payment, since, status, to, until }) => ({
    ...{ account, mode, endpoint, payment, status, to, after: after?.sequence },
    since: momentText(since),
    until: until && momentText(until)
  }),
  run: Effect.fnUntraced(function* ({ account, after, endpoint, mode, payment, since, status, to, until }, caller) {
    yield* mustExist(account)
    const now = yield* Clock.currentTimeMillis
    // Without a mode it is the one of the endpoint to send to.
    const only = mode ?? (to === undefined ? undefined : (yield* EndpointsRepo.byId(yield* Reader, to))?.mode)
    const asked = modes.filter((one) => one === (only ?? one))
    const left = asked.slice(after === undefined ? 0 : Math.max(0, asked.indexOf(after.mode)))
    const [whose, another] = yield* selected(caller, account, left, endpoint)
    if (whose === undefined) return { ordered: 0, due: 0, refused: 0 }
    const selection = {
      ...whose,
      ...{ payment, status, plugins: true },
      since: momentAt(since, now),
      until: until === undefined ? now : momentAt(until, now)
    }
    const { next, ...counts } = yield* redeliverPage(selection, targetOf(to, whose.owner), after)
    if (next !== undefined) return { ...counts, next: { mode: whose.owner.mode, ...next } }
    return another === undefined ? counts : { ...counts, next: { mode: another.owner.mode, createdAt: 0, sequence: 0 } }
  })
})

export const sendTestDelivery = operation({
  name: "webhooks test",
  summary: "Send an endpoint a signed test that is no webhook event, and show its response",
  input: {
    endpoint: withFlag(Schema.String, {
      about: "The endpoint, wh_…, of POST /v1/webhooks; not a shop plugin's",
      value: "ENDPOINT",
      isArgument: true
    })
  },
  output: Schema.Struct({
    id: Schema.String,
    endpoint: Schema.String,
    url: Schema.String,
    durationMillis: Schema.Number,
    address: maybe(Schema.String),
    status: maybe(Schema.Number),
    error: maybe(Schema.String),
    bodyStart: maybe(Schema.String)
  }),
  refusals: [NotFound, SecretUnreadable],
  audit: ({ endpoint }) => ({ endpoint }),
  auditFirst: true,
  run: Effect.fnUntraced(function* ({ endpoint: id }) {
    const endpoint = yield* EndpointsRepo.byId(yield* Reader, id)
    // A shop plugin takes no message but an invoice's.
    return endpoint === undefined || endpoint.plugin ? yield* noEndpoint(id) : yield* sendTest(endpoint)
  })
})
