import { Mark } from "../../Pages/marks.tsx"

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
    <button type="button" data-copies={id} hidden>
      <Mark of="copy" /> Copy
    </button>
    <span class="hint" aria-live="polite" data-copied={id} />
  </div>
)
