import type { ComponentChildren } from "preact"
import { assets } from "../Pages/assets.ts"
import { Document } from "../Pages/reply.tsx"

interface OutsideProps {
  readonly title: string
  readonly children: ComponentChildren
}

/** A page of the portal without a session. Its `<h1>` is the title. */
export const Outside = ({ children, title }: OutsideProps) => (
  <Document lang="en" title={`${title} · tilld`} assets={assets().urls("portal")} bodyClass="outside">
    <main>
      <p class="brand">tilld</p>
      <h1>{title}</h1>
      {children}
    </main>
  </Document>
)

interface PasskeyFormProps {
  readonly action?: string
  readonly csrf?: string
  /** `get` asks for a passkey, `create` makes one. */
  readonly does: "get" | "create"
  /** The options for it in JSON. */
  readonly options: object
  readonly submit: string
  /** The field with the passkey's answer; `passkey` unless given. */
  readonly field?: string
  readonly children?: ComponentChildren
}

/**
 * A form that sends the answer of a passkey in a field of its own. The script (`islands/main.ts`) shows it, where the
 * browser has passkeys, and fills in the field.
 */
export const PasskeyForm = ({ action, children, csrf, does, field = "passkey", options, submit }: PasskeyFormProps) => (
  <form
    method="post"
    action={action}
    class="fields"
    hidden
    data-passkey={does}
    data-field={field}
    data-options={JSON.stringify(options)}
  >
    {csrf === undefined ? null : <input type="hidden" name="csrf" value={csrf} />}
    {children}
    <input type="hidden" name={field} />
    <p class="actions">
      <button type="submit">{submit}</button>
    </p>
    <p class="problem" role="status" />
  </form>
)
