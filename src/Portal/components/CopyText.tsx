import type { ComponentChildren } from "preact"
import { Mark } from "../../Pages/marks.tsx"

export interface CopyTextProps {
  readonly text: string
  /** What is shown of it; the text as code unless given. */
  readonly children?: ComponentChildren
}

/** An id, a hash or a link, with a button that copies it where scripts run. */
export const CopyText = ({ children, text }: CopyTextProps) => (
  <span class="copy-text">
    {children ?? <code>{text}</code>}{" "}
    <button type="button" data-copy={text} aria-live="polite" hidden>
      <Mark of="copy" /> Copy
    </button>
  </span>
)
