/** Webhook endpoints: list with how they are doing, add, change, test, rotate, delete. */

import { Clock, Effect, Either, Option, Redacted } from "effect"
import type { Accounts } from "../../Auth.ts"
import { defaultOverlapHours } from "../../Domain/ApiKey.ts"
import { type EventKind, StatusEventKind } from "../../Domain/Event.ts"
import { EndpointId, newEndpointId } from "../../Domain/Ids.ts"
import type { Endpoint } from "../../Domain/Webhook.ts"
import type { HttpReply } from "../../Http/HttpReply.ts"
import { carryOut } from "../../Operations/auditLog.ts"
import { decodeForm } from "../../Operations/inputText.ts"
import { seeOther } from "../../Pages/reply.tsx"
import type { Settings } from "../../Settings.ts"
import { Reader, type StoreUnavailable, type Writer } from "../../Sql.ts"
import { sendTestDelivery } from "../../Webhooks/deliveryOperations.ts"
import {
  type ChangeRefused,
  changeEndpoint,
  deleteEndpoint,
  registerEndpoint
} from "../../Webhooks/endpointOperations.ts"
import { healthOf, wouldCancel } from "../../Webhooks/queue/EndpointHealthRepo.ts"
import * as EndpointsRepo from "../../Webhooks/queue/EndpointsRepo.ts"
import type { SigningKeys } from "../../Webhooks/SigningKeys.ts"
import { markOf } from "../../Webhooks/secretPair.ts"
import { freshSecret } from "../../Webhooks/signature.ts"
import type { DeliveryClient } from "../../Webhooks/transport/DeliveryClient.ts"
import { Webhooks } from "../../Webhooks.ts"
import { blank, Confirm, type FormState } from "../components/Form.tsx"
import { Notice } from "../components/values.tsx"
import { textOf } from "../fields.ts"
import { framedReply, missing } from "../framedReply.tsx"
import { withQuery } from "../query.ts"
import { afterDone, type PortalHandler, type PortalRoute, pathOf } from "../route.ts"
import { callerOf, mayAs, type Viewer } from "../Viewer.ts"
import { defaultSecretRoutes, secretReplaced, twoSign } from "./DefaultSecret.tsx"
import {
  countText,
  EndpointTable,
  NewEndpointForm,
  NewSecret,
  type NewSecretProps,
  OneEndpoint,
  type TestOutcome
} from "./WebhookViews.tsx"

type Needs = Accounts | DeliveryClient | Reader | Settings | SigningKeys | Webhooks | Writer

const seenOf = (endpoint: Endpoint) =>
  Effect.gen(function* () {
    return { endpoint, health: yield* healthOf(yield* Reader, endpoint.id) }
  })

const list: PortalHandler<Needs> = (viewer, { query }) =>
  Effect.gen(function* () {
    const webhooks = yield* Webhooks
    const seen = yield* Effect.forEach(yield* webhooks.list(viewer.owner), seenOf, { concurrency: 1 })
    const cancelled = query.get("cancelled") ?? ""
    const action = mayAs(viewer.role, "admin")
      ? { href: pathOf(viewer, "/webhooks/new"), text: "Add an endpoint" }
      : undefined
    return framedReply(
      viewer,
      { section: "/webhooks", title: "Webhooks", action },
      <>
        {/^\d{1,9}$/.test(cancelled) ? (
          <Notice tone="good" isAnswer>
            <p>The endpoint is deleted. Deliveries that were cancelled with it: {cancelled}.</p>
          </Notice>
        ) : null}
        <EndpointTable viewer={viewer} seen={seen} />
        <p>
          <a href={pathOf(viewer, "/webhooks/default-secret")}>Signing secret for payments’ own webhook URLs</a>
        </p>
      </>
    )
  })

const newEndpointPage = (viewer: Viewer, of: FormState, status?: number) =>
  framedReply(
    viewer,
    { section: "/webhooks", title: "Add an endpoint" },
    <NewEndpointForm viewer={viewer} of={of} />,
    status
  )

/** What a shop acts on: each change of status, and money that waits for a decision. */
const usualKinds: ReadonlyArray<EventKind> = [...StatusEventKind.literals, "payment.exception"]

const open: PortalHandler<never> = (viewer) =>
  Effect.sync(() => {
    const typed = new URLSearchParams(usualKinds.map((kind) => ["events", kind]))
    typed.set("id", newEndpointId())
    return newEndpointPage(viewer, { id: "endpoint", typed, problems: [] })
  })

const quotaProblem = { path: "", message: "The account has stored as much as it may: ask the operator for more room." }

/** What signs an endpoint's deliveries from now on. The answer to the form, so that it is never asked for by itself. */
const secretPage = (
  viewer: Viewer,
  id: EndpointId,
  shown: Pick<NewSecretProps, "secret" | "formerUntil" | "isFirst">
): HttpReply =>
  framedReply(
    viewer,
    { section: "/webhooks", title: shown.isFirst ? "The endpoint is added" : "The secret is rotated" },
    <NewSecret {...shown} label="Signing secret" href={pathOf(viewer, `/webhooks/${id}`)} onward="to the endpoint" />
  )

/** The form was sent again: its endpoint exists, and its secret is not shown again. */
const usedUp = (viewer: Viewer, id: EndpointId) =>
  framedReply(
    viewer,
    { section: "/webhooks", title: "This form has been used" },
    <p>
      Its endpoint was added, and its secret shown once. Nothing was changed now. If you have not kept the secret,
      rotate it: <a href={pathOf(viewer, `/webhooks/${id}`)}>the endpoint</a>.
    </p>,
    409
  )

/** A refusal of the URL, without the option's name. */
const urlProblem = ({ message }: ChangeRefused) => ({ path: "url", message: message.replace(/^--url /, "") })

const create: PortalHandler<Needs> = (viewer, { form }) =>
  Effect.gen(function* () {
    const refused = (problems: FormState["problems"]) =>
      newEndpointPage(viewer, { id: "endpoint", typed: form, problems }, 422)
    const id = EndpointId.make(textOf(form, "id"), true)
    const read = decodeForm(registerEndpoint, form, ["url", "events", "secret"], { ...viewer.owner, id })
    if (Either.isLeft(read)) return refused(read.left)
    return yield* carryOut(registerEndpoint, read.right, callerOf(viewer)).pipe(
      Effect.map(({ secret }) =>
        secretPage(viewer, id, { secret: Redacted.make(secret), formerUntil: undefined, isFirst: true })
      ),
      Effect.catchTags({
        ChangeRefused: (error) => Effect.succeed(refused([urlProblem(error)])),
        TooManyEndpoints: ({ message }) => Effect.succeed(refused([{ path: "", message }])),
        EndpointExists: () => Effect.succeed(usedUp(viewer, id)),
        QuotaExceeded: () => Effect.succeed(refused([quotaProblem])),
        UnknownAccount: Effect.die
      })
    )
  })

const targetOf = ({ events, url }: Endpoint): FormState => ({
  id: "target",
  typed: new URLSearchParams([["url", url], ...events.map((kind) => ["events", kind] as [string, string])]),
  problems: []
})

interface Forms {
  readonly target?: FormState
  readonly rotation?: FormState
  readonly tested?: TestOutcome
}

const endpointPage = (viewer: Viewer, endpoint: Endpoint, { rotation, target, tested }: Forms = {}) =>
  Effect.gen(function* () {
    const pair = yield* EndpointsRepo.sealedPair(yield* Reader, endpoint.id)
    const replaces = markOf(pair)
    const formerUntil = pair?.previous_until ?? 0
    const now = yield* Clock.currentTimeMillis
    const seen = yield* seenOf(endpoint)
    return framedReply(
      viewer,
      { section: "/webhooks", title: "Webhook endpoint" },
      <OneEndpoint
        viewer={viewer}
        seen={seen}
        target={target ?? targetOf(endpoint)}
        rotation={rotation ?? blank("rotation", { overlap: `${defaultOverlapHours}h`, replaces })}
        tested={tested}
        formerUntil={formerUntil > now ? formerUntil : undefined}
      />,
      target === undefined && rotation === undefined ? 200 : 422
    )
  })

/** Handles what is about one endpoint of the viewer's account and mode. */
const ofEndpoint =
  (
    handle: (viewer: Viewer, endpoint: Endpoint, form: URLSearchParams) => ReturnType<PortalHandler<Needs>>
  ): PortalHandler<Needs> =>
  (viewer, { form, params }) =>
    Effect.gen(function* () {
      const endpoint = yield* EndpointsRepo.find(yield* Reader, viewer.owner, params.id ?? "")
      return endpoint === undefined ? missing(viewer, "/webhooks", "endpoint") : yield* handle(viewer, endpoint, form)
    })

/** Changes an endpoint by some fields of a form, and shows it; `refused` shows the form again. */
const changed = (
  viewer: Viewer,
  { id }: Endpoint,
  form: URLSearchParams,
  names: ReadonlyArray<"url" | "events" | "secret" | "overlap">,
  given: Partial<typeof changeEndpoint.input.Encoded>,
  refused: (problems: FormState["problems"]) => Effect.Effect<HttpReply, StoreUnavailable, Needs>,
  after: Effect.Effect<HttpReply, StoreUnavailable, Needs> = Effect.succeed(
    seeOther(afterDone(viewer, `/webhooks/${id}`, "endpoint"))
  )
): Effect.Effect<HttpReply, StoreUnavailable, Needs> => {
  const read = decodeForm(changeEndpoint, form, names, { id, ...given })
  if (Either.isLeft(read)) return refused(read.left)
  return carryOut(changeEndpoint, read.right, callerOf(viewer)).pipe(
    Effect.zipRight(after),
    Effect.catchTags({
      NotFound: () => Effect.succeed(missing(viewer, "/webhooks", "endpoint")),
      ChangeRefused: (error) => refused([urlProblem(error)]),
      QuotaExceeded: () => refused([quotaProblem]),
      RotationUnderWay: ({ until }) =>
        refused([
          {
            path: "overlap",
            message: twoSign(until)
          }
        ]),
      SecretReplaced: () => Effect.succeed(secretReplaced(viewer, pathOf(viewer, `/webhooks/${id}`))),
      SecretUnreadable: () =>
        refused([
          { path: "overlap", message: "must be no time: the stored secret is damaged, and cannot sign any longer" }
        ])
    })
  )
}

const change = ofEndpoint((viewer, endpoint, form) =>
  changed(viewer, endpoint, form, ["url", "events"], {}, (problems) =>
    endpointPage(viewer, endpoint, { target: { id: "target", typed: form, problems } })
  )
)

const rotate = ofEndpoint((viewer, endpoint, form) => {
  const secret = textOf(form, "secret") || Redacted.value(freshSecret())
  const shown = Effect.gen(function* () {
    const pair = yield* EndpointsRepo.sealedPair(yield* Reader, endpoint.id)
    const formerUntil = pair?.previous_until ?? undefined
    return secretPage(viewer, endpoint.id, { secret: Redacted.make(secret), formerUntil })
  })
  const refused = (problems: FormState["problems"]) =>
    endpointPage(viewer, endpoint, { rotation: { id: "rotation", typed: form, problems } })
  return changed(viewer, endpoint, form, ["overlap"], { secret, replaces: textOf(form, "replaces") }, refused, shown)
})

const test = ofEndpoint((viewer, endpoint) =>
  carryOut(sendTestDelivery, { endpoint: endpoint.id }, callerOf(viewer)).pipe(
    Effect.flatMap((tested) => endpointPage(viewer, endpoint, { tested })),
    Effect.catchTags({
      NotFound: () => Effect.succeed(missing(viewer, "/webhooks", "endpoint")),
      SecretUnreadable: () =>
        Effect.succeed(
          framedReply(
            viewer,
            { section: "/webhooks", title: "The test was not sent" },
            <p>
              The stored secret of this endpoint is damaged, so that nothing can be signed for it:{" "}
              <a href={pathOf(viewer, `/webhooks/${endpoint.id}`)}>rotate it</a> with no overlap.
            </p>,
            409
          )
        )
    })
  )
)

const confirmDeletion = ofEndpoint((viewer, endpoint) =>
  Effect.gen(function* () {
    const count = yield* wouldCancel(yield* Reader, endpoint.id)
    const here = pathOf(viewer, `/webhooks/${endpoint.id}`)
    return framedReply(
      viewer,
      { section: "/webhooks", title: "Delete this endpoint?" },
      <>
        <p>{endpoint.url} gets no more events.</p>
        <Notice tone="warning">
          <p>
            {count === 0
              ? "No delivery is waiting: none would be cancelled."
              : `${countText(count)} ${count === 1 ? "delivery has" : "deliveries have"} not arrived yet, and would be cancelled. Each can be sent to another endpoint later.`}
          </p>
        </Notice>
        <Confirm id="delete" action={`${here}/delete`} csrf={viewer.csrf} submit="Delete it" back={here} />
      </>
    )
  })
)

const remove = ofEndpoint((viewer, { id }) =>
  Effect.gen(function* () {
    const done = yield* Effect.option(carryOut(deleteEndpoint, { id }, callerOf(viewer)))
    const cancelled = Option.match(done, { onNone: () => 0, onSome: (deleted) => deleted.cancelled })
    return seeOther(withQuery(pathOf(viewer, "/webhooks"), { cancelled: String(cancelled) }))
  })
)

export const webhookRoutes: ReadonlyArray<PortalRoute<Needs>> = [
  { method: "GET", path: "/webhooks", role: "viewer", handle: list },
  { method: "GET", path: "/webhooks/new", role: "admin", handle: open },
  {
    method: "POST",
    path: "/webhooks",
    role: "admin",
    proof: { when: "live", to: "add a webhook endpoint", checksFirst: true },
    handle: create
  },
  ...defaultSecretRoutes,
  {
    method: "GET",
    path: "/webhooks/:id",
    role: "viewer",
    handle: ofEndpoint((viewer, endpoint) => endpointPage(viewer, endpoint))
  },
  {
    method: "POST",
    path: "/webhooks/:id",
    role: "admin",
    proof: { when: "live", to: "change a webhook endpoint", checksFirst: true },
    handle: change
  },
  { method: "POST", path: "/webhooks/:id/test", role: "admin", handle: test },
  {
    method: "POST",
    path: "/webhooks/:id/secret",
    role: "admin",
    proof: { when: "live", to: "rotate the secret of a webhook endpoint", checksFirst: true },
    handle: rotate
  },
  { method: "GET", path: "/webhooks/:id/delete", role: "admin", handle: confirmDeletion },
  {
    method: "POST",
    path: "/webhooks/:id/delete",
    role: "admin",
    proof: { when: "live", to: "delete a webhook endpoint" },
    handle: remove
  }
]
