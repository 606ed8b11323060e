import { Redacted } from "effect"
import { CopyField } from "./CopyText.tsx"
import { Notice, Time } from "./values.tsx"

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
