import type { ComponentChildren } from "preact"
import { Mark } from "../../Pages/marks.tsx"

export interface CopyTextProps {
  readonly text: string
  /** What is shown of it; the text as code unless given. */
  readonly children?: ComponentChildren
}

const CopyButton = ({ text }: Pick<CopyTextProps, "text">) => (
  <button type="button" data-copy={text} aria-live="polite" hidden>
    <Mark of="copy" /> Copy
  </button>
)

/** An id, a hash or a link, with a button that copies it where scripts run. */
export const CopyText = ({ children, text }: CopyTextProps) => (
  <span class="copy-text">
    {children ?? <code>{text}</code>} <CopyButton text={text} />
  </span>
)

export interface CopyFieldProps {
  /** Unique on the page. */
  readonly id: string
  readonly label: string
  readonly value: string
}

/** A text to take away: selectable, and with a button that copies it where scripts run. */
export const CopyField = ({ id, label, value }: CopyFieldProps) => (
  <div class="field copy">
    <label for={id}>{label}</label>
    <input id={id} type="text" class="secret" readOnly value={value} autocomplete="off" spellcheck={false} />
    <CopyButton text={value} />
    <span class="hint" />
  </div>
)
