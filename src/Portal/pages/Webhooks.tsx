/** Webhook endpoints: list with how they are doing, add, change, test, rotate, delete. */

import { Clock, Effect, Redacted } from "effect"
import type { Accounts } from "../../Auth.ts"
import { defaultOverlapHours } from "../../Domain/ApiKey.ts"
import { type EventKind, StatusEventKind } from "../../Domain/Event.ts"
import { EndpointId, newEndpointId } from "../../Domain/Ids.ts"
import type { RotationUnderWay } from "../../Domain/SecretErrors.ts"
import type { Endpoint } from "../../Domain/Webhook.ts"
import type { HttpReply } from "../../Http/HttpReply.ts"
import { iso } from "../../lib/moment.ts"
import { seeOther } from "../../Pages/reply.tsx"
import type { Settings } from "../../Settings.ts"
import { Reader, type Writer } from "../../Sql.ts"
import { sendTestDelivery } from "../../Webhooks/deliveryOperations.ts"
import {
  type ChangeRefused,
  changeEndpoint,
  deleteEndpoint,
  registerEndpoint
} from "../../Webhooks/endpointOperations.ts"
import * as EndpointsRepo from "../../Webhooks/queue/EndpointsRepo.ts"
import { healthOf, wouldCancel } from "../../Webhooks/queue/EndpointsRepo.ts"
import { countLimit } from "../../Webhooks/queue/LanesRepo.ts"
import type { SigningKeys } from "../../Webhooks/SigningKeys.ts"
import { ageOf, type DefaultSecretAge, markOf } from "../../Webhooks/SigningKeys.ts"
import { rotateSecret } from "../../Webhooks/secretOperations.ts"
import { freshSecret } from "../../Webhooks/signature.ts"
import type { DeliveryClient } from "../../Webhooks/transport/DeliveryClient.ts"
import type { Webhooks } from "../../Webhooks.ts"
import { aboutOne, act, confirmation, framedReply, missing } from "../answers.tsx"
import { blank, type FormState, Hidden, Onward, PostForm } from "../components/Form.tsx"
import { CopyText, countText, Facts, LastTime, Notice, Table, Time, utcText } from "../components/values.tsx"
import { afterDone, formRoute, type PortalHandler, type PortalRoute, pageRoute, pathOf, proofTo } from "../route.ts"
import { mayAs, textOf, type Viewer, withQuery } from "../Viewer.ts"
import {
  EndpointActions,
  EndpointState,
  endpointLabels,
  eventsText,
  NewSecret,
  type NewSecretProps,
  RotationForm,
  SecretField,
  TargetFields,
  type TestOutcome,
  TestResult
} from "./WebhookViews.tsx"

type Needs = Accounts | DeliveryClient | Reader | Settings | SigningKeys | Webhooks | Writer

const defaultPath = "/webhooks/default-secret"
const defaultPage = { section: "/webhooks", title: "Default secret" } as const

/** @param now Unix milliseconds */
const ageView = (age: DefaultSecretAge | undefined, now: number) =>
  age === undefined ? (
    <p class="empty">There is none yet: it is made when it is first needed.</p>
  ) : (
    <Facts
      of={{
        Created: <Time at={age.createdAt} />,
        "The former one signs until":
          age.previousUntil === null || age.previousUntil <= now ? undefined : <Time at={age.previousUntil} />
      }}
    />
  )

/** The form of a rotation, of the secret that is in force now. */
const rotationOf = (
  replaces: string,
  refused = blank("rotation", { overlap: `${defaultOverlapHours}h` })
): FormState => {
  const typed = new URLSearchParams(refused.typed)
  typed.set("replaces", replaces)
  return { ...refused, typed }
}

const showDefault = Effect.fnUntraced(function* (viewer: Viewer, refused?: FormState) {
  const age = yield* ageOf(yield* Reader, viewer.owner)
  const form = rotationOf(markOf(age), refused)
  const now = yield* Clock.currentTimeMillis
  return framedReply(
    viewer,
    defaultPage,
    <>
      <p>
        It signs what is sent to a payment’s own webhookUrl, unless that is the URL of an endpoint. It is stored sealed,
        and shown only when it is new.
      </p>
      <section class="card">{ageView(age, now)}</section>
      {mayAs(viewer.role, "admin") ? (
        <section class="card" aria-label="A new secret">
          <RotationForm of={form} to={defaultPath} submit="Make a new secret" />
        </section>
      ) : null}
    </>,
    refused === undefined ? 200 : 422
  )
})

/** Why a secret was not rotated. */
const rotationRefusals = {
  SecretReplaced: () => ({
    path: "",
    message:
      "Another secret is in force than when this form was opened: it was sent twice, or somebody else has replaced it. If nobody has kept what was shown, replace it once more."
  }),
  RotationUnderWay: ({ until }: RotationUnderWay) => ({
    path: "overlap",
    message: `must be no time: the secret before this one still signs, until ${utcText(iso(until))}. Wait for that, or end both now`
  }),
  SecretUnreadable: () => ({
    path: "overlap",
    message: "must be no time: the stored secret is damaged, and cannot sign any longer"
  })
}

const rotateDefault: PortalHandler<Needs> = (viewer, { form }) =>
  act(viewer, rotateSecret, {
    ...{ form, fields: ["overlap"], given: { ...viewer.owner, replaces: textOf(form, "replaces") } },
    done: ({ previous, secret }, { replaces }) =>
      framedReply(
        viewer,
        defaultPage,
        <NewSecret
          label="The default secret"
          secret={Redacted.make(secret)}
          formerUntil={previous?.until}
          isFirst={replaces === markOf(undefined)}
          href={pathOf(viewer, "/webhooks")}
          onward="to the list"
        />
      ),
    refused: (problems) => showDefault(viewer, { id: "rotation", typed: form, problems }),
    on: rotationRefusals
  })

const list: PortalHandler<Needs> = Effect.fnUntraced(function* (viewer, { query }) {
  const reader = yield* Reader
  const seen = yield* Effect.forEach(
    yield* EndpointsRepo.list(reader, viewer.owner),
    (endpoint) => Effect.map(healthOf(reader, endpoint.id), (health) => ({ endpoint, health })),
    { concurrency: 1 }
  )
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
      <Table
        caption="Webhook endpoints"
        rows={seen}
        keyOf={({ endpoint }) => endpoint.id}
        hrefOf={({ endpoint }) => pathOf(viewer, `/webhooks/${endpoint.id}`)}
        empty="No endpoint yet. An endpoint is an address of your server that gets each event, signed."
        columns={[
          { name: "URL", cell: ({ endpoint }) => endpoint.url },
          { name: "Status", cell: ({ health }) => <EndpointState of={health} /> },
          { name: "Last delivered", cell: ({ health }) => <LastTime at={health.deliveredAt} /> },
          { name: "Waiting", numeric: true, cell: ({ health }) => countText(health.waiting, countLimit) },
          { name: "Events", cell: ({ endpoint }) => eventsText(endpoint) }
        ]}
      />
      <Onward to={defaultPath}>Signing secret for payments’ own webhook URLs</Onward>
    </>
  )
})

/** Adds an endpoint. Its id is drawn with the form, so that a form that is sent twice adds one. */
const newEndpointPage = (viewer: Viewer, of: FormState, status?: number) =>
  framedReply(
    viewer,
    { section: "/webhooks", title: "Add an endpoint" },
    <section class="card" aria-label="The endpoint">
      <PostForm of={of} to="/webhooks" submit="Add the endpoint" labels={endpointLabels}>
        <Hidden name="id" />
        <TargetFields />
        <SecretField />
      </PostForm>
    </section>,
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
const usedUp = {
  path: "",
  message:
    "This form was sent before: its endpoint was added, and its secret shown once. If nobody has kept that, rotate it."
}

/** A refusal of the URL, without the option's name. */
const urlProblem = ({ message }: ChangeRefused) => ({ path: "url", message: message.replace(/^--url /, "") })

const create: PortalHandler<Needs> = (viewer, { form }) => {
  const id = EndpointId.make(textOf(form, "id"), true)
  return act(viewer, registerEndpoint, {
    ...{ form, fields: ["url", "events", "secret"], given: { ...viewer.owner, id } },
    done: ({ id: made, secret }) => {
      const shown = { secret: Redacted.make(secret), formerUntil: undefined, isFirst: true }
      return secretPage(viewer, EndpointId.make(made, true), shown)
    },
    refused: (problems) => newEndpointPage(viewer, { id: "endpoint", typed: form, problems }, 422),
    on: { ChangeRefused: urlProblem, EndpointExists: () => usedUp, QuotaExceeded: () => quotaProblem }
  })
}

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

const endpointPage = Effect.fnUntraced(function* (
  viewer: Viewer,
  endpoint: Endpoint,
  { rotation, target, tested }: Forms = {}
) {
  const reader = yield* Reader
  const pair = yield* EndpointsRepo.sealedPair(reader, endpoint.id)
  const formerUntil = pair?.previous_until ?? 0
  const now = yield* Clock.currentTimeMillis
  const health = yield* healthOf(reader, endpoint.id)
  const forms = { target: target ?? targetOf(endpoint), rotation: rotationOf(markOf(pair), rotation) }
  return framedReply(
    viewer,
    { section: "/webhooks", title: "Webhook endpoint" },
    <>
      {tested === undefined ? null : <TestResult of={tested} viewer={viewer} />}
      <section class="card">
        <Facts
          of={{
            URL: endpoint.url,
            Identifier: <CopyText text={endpoint.id} />,
            Status: <EndpointState of={health} />,
            "Last delivered": <LastTime at={health.deliveredAt} />,
            "Waiting for an attempt": countText(health.waiting, countLimit),
            Events: eventsText(endpoint),
            Added: <Time at={endpoint.createdAt} />,
            "The former secret signs until": formerUntil > now ? <Time at={formerUntil} /> : undefined
          }}
        />
        <Onward to={`/deliveries?endpoint=${endpoint.id}`}>Its deliveries</Onward>
      </section>
      {mayAs(viewer.role, "admin") ? <EndpointActions endpoint={endpoint} {...forms} /> : null}
    </>,
    target === undefined && rotation === undefined ? 200 : 422
  )
})

const ofEndpoint = aboutOne("/webhooks", "endpoint", (viewer, id) =>
  Effect.flatMap(Reader, (reader) => EndpointsRepo.find(reader, viewer.owner, id))
)

const showEndpoint = ofEndpoint((viewer, endpoint) => endpointPage(viewer, endpoint))

const changeRefusals = (viewer: Viewer) => ({
  ...rotationRefusals,
  NotFound: () => missing(viewer, "/webhooks", "endpoint"),
  ChangeRefused: urlProblem,
  QuotaExceeded: () => quotaProblem
})

const change = ofEndpoint((viewer, endpoint, form) =>
  act(viewer, changeEndpoint, {
    ...{ form, fields: ["url", "events"], given: { id: endpoint.id } },
    done: () => seeOther(afterDone(viewer, `/webhooks/${endpoint.id}`, "endpoint")),
    refused: (problems) => endpointPage(viewer, endpoint, { target: { id: "target", typed: form, problems } }),
    on: changeRefusals(viewer)
  })
)

const rotate = ofEndpoint((viewer, endpoint, form) =>
  Effect.flatMap(Reader, (reader) => {
    const { id } = endpoint
    const secret = textOf(form, "secret") || Redacted.value(freshSecret())
    return act(viewer, changeEndpoint, {
      ...{ form, fields: ["overlap"], given: { id, secret, replaces: textOf(form, "replaces") } },
      done: () =>
        Effect.map(EndpointsRepo.sealedPair(reader, id), (pair) =>
          secretPage(viewer, id, { secret: Redacted.make(secret), formerUntil: pair?.previous_until ?? undefined })
        ),
      refused: (problems) => endpointPage(viewer, endpoint, { rotation: { id: "rotation", typed: form, problems } }),
      on: changeRefusals(viewer)
    })
  })
)

const test = ofEndpoint((viewer, endpoint, form) =>
  act(viewer, sendTestDelivery, {
    ...{ form, fields: [], given: { endpoint: endpoint.id } },
    done: (tested) => endpointPage(viewer, endpoint, { tested }),
    refused: (problems) => endpointPage(viewer, endpoint, { rotation: { ...blank("rotation"), problems } }),
    on: {
      NotFound: () => missing(viewer, "/webhooks", "endpoint"),
      SecretUnreadable: rotationRefusals.SecretUnreadable
    }
  })
)

const confirmDeletion = ofEndpoint((viewer, endpoint) =>
  Effect.gen(function* () {
    const count = yield* wouldCancel(yield* Reader, endpoint.id)
    const back = `/webhooks/${endpoint.id}`
    return confirmation(
      viewer,
      { section: "/webhooks", title: "Delete this endpoint?", to: `${back}/delete`, submit: "Delete it", back },
      <>
        <p>{endpoint.url} gets no more events.</p>
        <Notice tone="warning">
          <p>
            {count === 0
              ? "No delivery is waiting: none would be cancelled."
              : `${countText(count, countLimit)} ${count === 1 ? "delivery has" : "deliveries have"} not arrived yet, and would be cancelled. Each can be sent to another endpoint later.`}
          </p>
        </Notice>
      </>
    )
  })
)

const remove = ofEndpoint((viewer, { id }, form) => {
  const done = (cancelled: number) => seeOther(withQuery(pathOf(viewer, "/webhooks"), { cancelled: String(cancelled) }))
  return act(viewer, deleteEndpoint, {
    ...{ form, fields: [], given: { id } },
    done: ({ cancelled }) => done(cancelled),
    // Somebody else has deleted it.
    refused: () => done(0)
  })
})

export const webhookRoutes: ReadonlyArray<PortalRoute<Needs>> = [
  pageRoute("/webhooks", "viewer", list),
  pageRoute("/webhooks/new", "admin", open),
  formRoute("/webhooks", "admin", create, proofTo("add a webhook endpoint")),
  pageRoute(defaultPath, "viewer", (viewer) => showDefault(viewer)),
  formRoute(defaultPath, "admin", rotateDefault, proofTo("make a new default secret")),
  pageRoute("/webhooks/:id", "viewer", showEndpoint),
  formRoute("/webhooks/:id", "admin", change, proofTo("change a webhook endpoint")),
  formRoute("/webhooks/:id/test", "admin", test),
  formRoute("/webhooks/:id/secret", "admin", rotate, proofTo("rotate the secret of a webhook endpoint")),
  pageRoute("/webhooks/:id/delete", "admin", confirmDeletion),
  formRoute("/webhooks/:id/delete", "admin", remove, proofTo("delete a webhook endpoint"))
]
