/** What an operator does with webhook endpoints: register and list them, change one of any account. */
import { Effect, Redacted, Schema } from "effect"
import { mustExist } from "../Auth/accountOperations.ts"
import { QuotaExceeded, UnknownAccount } from "../Domain/Account.ts"
import { longestOverlap } from "../Domain/ApiKey.ts"
import { Mode, modes } from "../Domain/Chain.ts"
import { EventKind, StatusEventKind } from "../Domain/Event.ts"
import { EndpointId, newEndpointId } from "../Domain/Ids.ts"
import { RotationUnderWay, SecretReplaced, SecretUnreadable } from "../Domain/SecretErrors.ts"
import {
  EndpointExists,
  EventKinds,
  loggedHost,
  PluginEndpoint,
  SecretText,
  secretRule,
  TooManyEndpoints
} from "../Domain/Webhook.ts"
import { must } from "../lib/annotations.ts"
import { Moment } from "../lib/moment.ts"
import {
  AccountField,
  durationUpTo,
  ModeField,
  maybe,
  NotFound,
  otherwise,
  SomeMode
} from "../Operations/inputFields.ts"
import { operation, withFlag } from "../Operations/operation.ts"
import { Reader } from "../Sql/Db.ts"
import { Webhooks } from "../Webhooks.ts"
import * as EndpointsRepo from "./queue/EndpointsRepo.ts"
import { freshSecret } from "./signature.ts"

const ListedEndpoint = Schema.Struct({
  id: Schema.String,
  account: Schema.String,
  mode: Mode,
  url: Schema.String,
  events: Schema.Array(EventKind),
  plugin: Schema.optional(PluginEndpoint),
  createdAt: Moment,
  formerSecretUntil: Schema.optional(Moment)
})
export type ListedEndpointJson = typeof ListedEndpoint.Encoded

export const listEndpoints = operation({
  name: "webhooks endpoints",
  summary: "Show the registered endpoints of an account, without their secrets",
  input: { account: AccountField, mode: SomeMode },
  output: Schema.Array(ListedEndpoint),
  refusals: [UnknownAccount],
  run: Effect.fnUntraced(function* ({ account, mode: only }) {
    yield* mustExist(account)
    const reader = yield* Reader
    const each = Effect.forEach(
      modes.filter((mode) => mode === (only ?? mode)),
      (mode) => EndpointsRepo.list(reader, { account, mode }),
      { concurrency: 1 }
    )
    return (yield* each).flat()
  })
})

/** The URL is not one that may be called. Nothing was changed. */
export class ChangeRefused extends Schema.TaggedError<ChangeRefused>()("ChangeRefused", { message: Schema.String }) {}

const eventsFlag = { about: `The kinds that it receives: of ${EventKind.literals.join(", ")}`, value: "A,B" }
const SecretOfOwn = maybe(must(secretRule, SecretText))

export const registerEndpoint = operation({
  name: "webhooks register",
  summary: "Register an endpoint that gets the events of an account, and print its secret, once",
  input: {
    /** Drawn by the client, so that a request that is sent twice registers one endpoint. */
    id: otherwise(
      must("be the id of a new endpoint, wh_ and 22 random characters, or absent", EndpointId),
      newEndpointId
    ),
    mode: ModeField,
    account: AccountField,
    url: withFlag(Schema.String, { about: "Where its events go, https only" }),
    events: withFlag(
      otherwise(EventKinds, () => StatusEventKind.literals),
      { ...eventsFlag, about: `${eventsFlag.about}; otherwise those of each new status` }
    ),
    secret: withFlag(SecretOfOwn, {
      about: "A secret of your own, otherwise a new one is made",
      isFile: true
    })
  },
  output: Schema.Struct({ ...ListedEndpoint.fields, secret: Schema.String }),
  refusals: [UnknownAccount, ChangeRefused, TooManyEndpoints, EndpointExists, QuotaExceeded],
  audit: ({ account, events, id: endpoint, mode, url }) => ({ endpoint, account, mode, host: loggedHost(url), events }),
  run: Effect.fnUntraced(function* ({ account, events, id, mode, url, ...given }, _, note) {
    yield* mustExist(account)
    const webhooks = yield* Webhooks
    const secret = given.secret === undefined ? freshSecret() : Redacted.make(given.secret)
    const endpoint = yield* webhooks
      .create({ account, mode }, { id, url, events, secret }, (registered) =>
        Effect.sync(() => note({ endpoint: registered.id }))
      )
      .pipe(
        Effect.catchTags({
          TargetRefused: ({ message }) => new ChangeRefused({ message: `The URL ${message}` }),
          EndpointAlike: ({ id }) =>
            new ChangeRefused({
              message: `The URL and the kinds are those of ${id}, which has another secret: change that`
            })
        })
      )
    return { ...endpoint, secret: Redacted.value(secret) }
  })
})

const endpointId = withFlag(Schema.String, {
  about: "The endpoint, wh_…, as tilld webhooks endpoints shows it",
  value: "ENDPOINT",
  isArgument: true
})

const noEndpoint = (id: string) =>
  new NotFound({ message: `There is no endpoint ${id}: tilld webhooks endpoints names them` })

export const changeEndpoint = operation({
  name: "webhooks change",
  summary: "Change an endpoint's URL, kinds of events or secret; nothing that is pending is lost",
  input: {
    id: endpointId,
    url: withFlag(maybe(Schema.String), { about: "Where its events go from now on, those that are pending too" }),
    events: withFlag(maybe(EventKinds), eventsFlag),
    secret: withFlag(SecretOfOwn, {
      about: "Its new secret",
      isFile: true
    }),
    overlap: withFlag(maybe(durationUpTo(longestOverlap)), {
      about: "With a new secret: how long the present one still signs; otherwise 24h",
      value: "DURATION"
    }),
    /** The mark of the secret that a new one is to replace: where another one is in force, it is refused. */
    replaces: maybe(Schema.String)
  },
  check: ({ events, overlap, secret, url }) => {
    if (overlap !== undefined && secret === undefined) return "An overlap is for a new secret, and there is none"
    return url === undefined && events === undefined && secret === undefined
      ? "Say what to change: the URL, the kinds of events or the secret"
      : undefined
  },
  output: ListedEndpoint,
  refusals: [NotFound, ChangeRefused, QuotaExceeded, RotationUnderWay, SecretReplaced, SecretUnreadable],
  audit: ({ events, id, secret, url }) => ({
    ...{ endpoint: id, host: loggedHost(url), events, secret: secret && "replaced" }
  }),
  run: Effect.fnUntraced(function* ({ id, secret, ...change }) {
    const webhooks = yield* Webhooks
    const endpoint = yield* EndpointsRepo.byId(yield* Reader, id)
    if (endpoint === undefined) return yield* noEndpoint(id)
    if (endpoint.plugin !== undefined) {
      return yield* new ChangeRefused({ message: `${id} is of a shop plugin: change it there, or delete it` })
    }
    const changed = yield* webhooks
      .change(endpoint, id, { ...change, secret: secret === undefined ? undefined : Redacted.make(secret) })
      .pipe(Effect.catchTag("TargetRefused", ({ message }) => new ChangeRefused({ message: `The URL ${message}` })))
    return changed === undefined ? yield* noEndpoint(id) : changed
  })
})

export const deleteEndpoint = operation({
  name: "webhooks delete",
  summary: "Delete an endpoint; its deliveries that have not arrived are cancelled, and can be sent to another one",
  input: { id: endpointId },
  /** `cancelled`: deliveries that were cancelled with it. */
  output: Schema.Struct({ id: Schema.String, cancelled: Schema.Int }),
  refusals: [NotFound],
  audit: ({ id: endpoint }) => ({ endpoint }),
  run: Effect.fnUntraced(function* ({ id }) {
    const endpoint = yield* EndpointsRepo.byId(yield* Reader, id)
    const cancelled = endpoint && (yield* (yield* Webhooks).remove(endpoint, id, endpoint.plugin !== undefined))
    return cancelled === undefined ? yield* noEndpoint(id) : { id, cancelled }
  })
})
