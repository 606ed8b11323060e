/** What the pages of webhook endpoints show: a new secret, the state of one, the forms, what came of a test. */

import { Redacted } from "effect"
import { EventKind } from "../../Domain/Event.ts"
import type { Endpoint } from "../../Domain/Webhook.ts"
import type { sendTestDelivery } from "../../Webhooks/deliveryOperations.ts"
import type { EndpointHealth } from "../../Webhooks/queue/EndpointsRepo.ts"
import { countLimit } from "../../Webhooks/queue/LanesRepo.ts"
import {
  Act,
  Checks,
  type FormState,
  Hidden,
  Onward,
  PostForm,
  type PostFormProps,
  Select,
  TextField
} from "../components/Form.tsx"
import { CopyField, countText, Facts, Notice, Status, Time } from "../components/values.tsx"
import type { Viewer } from "../Viewer.ts"

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

const stateOf = ({ deliveredAt, failing }: EndpointHealth) =>
  failing > 0
    ? `${countText(failing, countLimit)} failing`
    : deliveredAt === undefined
      ? "no event delivered yet"
      : "healthy"

export const EndpointState = ({ of }: { readonly of: EndpointHealth }) => (
  <Status of={stateOf(of)} tone={of.failing > 0 ? "bad" : of.deliveredAt === undefined ? "neutral" : "good"} />
)

/** What an endpoint gets; of a shop plugin's, as the plugin asked. */
export const eventsText = ({ events, plugin }: Endpoint): string =>
  plugin === undefined
    ? events.join(", ")
    : `Shop plugin${plugin.enabled ? "" : ", disabled"}: ${plugin.everything ? "all" : plugin.specificEvents.join(", ")}`

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
export const TestResult = ({ of, viewer }: { readonly of: TestOutcome; readonly viewer: Viewer }) => {
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

interface EndpointActionsProps {
  readonly endpoint: Endpoint
  readonly target: FormState
  readonly rotation: FormState
}

/** What an admin can do with an endpoint. */
export const EndpointActions = ({ endpoint, rotation, target }: EndpointActionsProps) => {
  const path = `/webhooks/${endpoint.id}`
  const deletion = <Onward to={`${path}/delete`}>Delete this endpoint</Onward>
  // Its plugin changes it.
  if (endpoint.plugin !== undefined) return deletion
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
      {deletion}
    </>
  )
}
