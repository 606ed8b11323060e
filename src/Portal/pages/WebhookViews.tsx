/** What the pages of webhook endpoints show: a list, one endpoint, the forms. */

import { Redacted } from "effect"
import { EventKind } from "../../Domain/Event.ts"
import type { Endpoint } from "../../Domain/Webhook.ts"
import type { sendTestDelivery } from "../../Webhooks/deliveryOperations.ts"
import { countLimit, type EndpointHealth } from "../../Webhooks/queue/EndpointHealthRepo.ts"
import {
  Act,
  Checks,
  type FormState,
  Hidden,
  PostForm,
  type PostFormProps,
  Select,
  TextField
} from "../components/Form.tsx"
import { Facts, Table } from "../components/Table.tsx"
import { CopyField, CopyText, Notice, Status, Time } from "../components/values.tsx"
import { pathOf } from "../route.ts"
import { mayAs, type Viewer } from "../Viewer.ts"

export interface NewSecretProps {
  readonly label: string
  /** What signs from now on. */
  readonly secret: Redacted.Redacted<string>
  /** Until when the one before also signs, Unix milliseconds; undefined where none does. */
  readonly formerUntil: number | undefined
  /** There was none before. */
  readonly isFirst?: boolean
  /** Where it goes on. */
  readonly href: string
  readonly onward: string
}

/** A secret that has just been put in force, shown this once. */
export const NewSecret = ({ formerUntil, href, isFirst = false, label, onward, secret }: NewSecretProps) => (
  <>
    <Notice tone="warning" isAnswer>
      <p>This secret is in force. It is the only time that it is shown: put it into your receiver now.</p>
    </Notice>
    <CopyField id="new-secret" label={label} value={Redacted.value(secret)} />
    {isFirst ? null : (
      <p>
        {formerUntil === undefined ? (
          "The former secret signs no more."
        ) : (
          <>
            The former secret also signs until <Time at={formerUntil} />.
          </>
        )}
      </p>
    )}
    <p>
      <a href={href}>I have kept it: {onward}</a>
    </p>
  </>
)

/** How many, where no more than a limit are counted. */
export const countText = (count: number): string => (count < countLimit ? String(count) : `${countLimit} or more`)

interface SeenEndpoint {
  readonly endpoint: Endpoint
  readonly health: EndpointHealth
}

const stateOf = ({ deliveredAt, failing }: EndpointHealth) =>
  failing > 0 ? `${countText(failing)} failing` : deliveredAt === undefined ? "no event delivered yet" : "healthy"

const State = ({ of }: { readonly of: EndpointHealth }) => (
  <Status of={stateOf(of)} tone={of.failing > 0 ? "bad" : of.deliveredAt === undefined ? "neutral" : "good"} />
)

const LastDelivery = ({ of: { deliveredAt } }: { readonly of: EndpointHealth }) =>
  deliveredAt === undefined ? <>never</> : <Time at={deliveredAt} />

export const EndpointTable = ({
  seen,
  viewer
}: {
  readonly seen: ReadonlyArray<SeenEndpoint>
  readonly viewer: Viewer
}) => (
  <Table
    caption="Webhook endpoints"
    rows={seen}
    keyOf={({ endpoint }) => endpoint.id}
    hrefOf={({ endpoint }) => pathOf(viewer, `/webhooks/${endpoint.id}`)}
    empty="No endpoint yet. An endpoint is an address of your server that gets each event, signed."
    columns={[
      { name: "URL", cell: ({ endpoint }) => endpoint.url },
      { name: "Status", cell: ({ health }) => <State of={health} /> },
      { name: "Last delivered", cell: ({ health }) => <LastDelivery of={health} /> },
      { name: "Waiting", numeric: true, cell: ({ health }) => countText(health.waiting) },
      { name: "Events", cell: ({ endpoint }) => endpoint.events.join(", ") }
    ]}
  />
)

export const endpointLabels = {
  url: "URL",
  events: "Events",
  secret: "Signing secret",
  overlap: "The former secret also signs for"
}

/** How long a former secret may sign on. */
const overlaps = [
  ["1h", "an hour"],
  ["24h", "24 hours"],
  ["7d", "7 days"],
  ["0s", "no time: it ends now"]
] as const

const kindTexts: Readonly<Record<EventKind, string>> = {
  "payment.created": "a payment was made",
  "payment.detecting": "money was seen and waits for confirmations",
  "payment.confirmed": "it is paid",
  "payment.expired": "nothing came in time, or it was cancelled",
  "payment.failed": "too little came, or something else than was asked for",
  "payment.updated": "more of it came, a reorg took some back, or some goes back",
  "payment.exception": "money that fits no payment needs your decision, or was decided on",
  "refund.final": "the chain has a refund for good",
  "invoice.created": "an invoice was made",
  "invoice.processing": "money was seen for an invoice",
  "invoice.paid": "an invoice is paid",
  "invoice.expired": "an invoice was not paid in time",
  "invoice.failed": "the payment of an invoice failed",
  "invoice.cancelled": "an invoice was cancelled"
}

const kinds = EventKind.literals.map((kind) => [kind, `${kind}: ${kindTexts[kind]}`] as const)

export const TargetFields = () => (
  <>
    <TextField name="url" type="url" placeholder="https://" hint="https only." required />
    <Checks name="events" options={kinds} />
  </>
)

export const SecretField = () => (
  <TextField
    name="secret"
    hint="Leave it empty for a new one, which the next page shows, once. Or give one of your own: whsec_ and 16 to 256 visible characters."
    autocomplete="off"
  />
)

/** Makes a new secret in the place of the one whose mark it carries. */
export const RotationForm = ({ children, ...form }: PostFormProps) => (
  <PostForm {...form} labels={endpointLabels}>
    <Hidden name="replaces" />
    {children}
    <Select name="overlap" options={overlaps} />
  </PostForm>
)

export type TestOutcome = typeof sendTestDelivery.output.Type

/** What came of a test: the exact status and the start of the answer. */
const TestResult = ({ of, viewer }: { readonly of: TestOutcome; readonly viewer: Viewer }) => {
  const arrived = of.status !== undefined && of.status >= 200 && of.status < 300
  return (
    <Notice tone={arrived ? "good" : "bad"} isAnswer>
      <p>
        {arrived ? "The test message arrived" : "The test message did not arrive"}: {of.status ?? of.error} after{" "}
        {of.durationMillis} ms.
      </p>
      <Facts
        of={{
          "Sent id": <code>{of.id}</code>,
          // What was dialled may be an inside address: for operators alone.
          Address: viewer.role === "operator" ? of.address : undefined,
          Error: of.error
        }}
      />
      {of.bodyStart === undefined || of.bodyStart === "" ? null : <pre>{of.bodyStart}</pre>}
    </Notice>
  )
}

interface OneEndpointProps {
  readonly viewer: Viewer
  readonly seen: SeenEndpoint
  readonly target: FormState
  readonly rotation: FormState
  readonly tested: TestOutcome | undefined
  /** Unix milliseconds; undefined where one secret signs. */
  readonly formerUntil: number | undefined
}

/** One endpoint, and for an admin what can be done with it. */
export const OneEndpoint = ({ formerUntil, rotation, seen, target, tested, viewer }: OneEndpointProps) => {
  const { endpoint, health } = seen
  return (
    <>
      {tested === undefined ? null : <TestResult of={tested} viewer={viewer} />}
      <section class="card">
        <Facts
          of={{
            URL: endpoint.url,
            Identifier: <CopyText text={endpoint.id} />,
            Status: <State of={health} />,
            "Last delivered": <LastDelivery of={health} />,
            "Waiting for an attempt": countText(health.waiting),
            Events: endpoint.events.join(", "),
            Added: <Time at={endpoint.createdAt} />,
            "The former secret signs until": formerUntil === undefined ? undefined : <Time at={formerUntil} />
          }}
        />
        <p>
          <a href={`${pathOf(viewer, "/deliveries")}?endpoint=${endpoint.id}`}>Its deliveries</a>
        </p>
      </section>
      {mayAs(viewer.role, "admin") ? (
        <EndpointActions viewer={viewer} endpoint={endpoint} target={target} rotation={rotation} />
      ) : null}
    </>
  )
}

interface EndpointActionsProps extends Pick<OneEndpointProps, "viewer" | "target" | "rotation"> {
  readonly endpoint: Endpoint
}

const EndpointActions = ({ endpoint, rotation, target, viewer }: EndpointActionsProps) => {
  const path = `/webhooks/${endpoint.id}`
  return (
    <>
      <section class="card">
        <h2>Test</h2>
        <p>Sends a signed message that tells of no payment, and shows what your server answers.</p>
        <Act to={`${path}/test`}>Send a test</Act>
      </section>
      <section class="card">
        <h2>Change</h2>
        <PostForm of={target} to={path} submit="Change" labels={endpointLabels}>
          <TargetFields />
        </PostForm>
      </section>
      <section class="card">
        <h2>Rotate the secret</h2>
        <RotationForm of={rotation} to={`${path}/secret`} submit="Rotate">
          <SecretField />
        </RotationForm>
      </section>
      <p>
        <a href={pathOf(viewer, `${path}/delete`)}>Delete this endpoint</a>
      </p>
    </>
  )
}
