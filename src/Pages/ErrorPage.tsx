import type { HttpReply } from "../Http/HttpReply.ts"
import { type AssetRoom, assets } from "./assets.ts"
import { Document } from "./Document.tsx"
import { pageReply } from "./reply.tsx"

export interface ErrorText {
  readonly lang?: string
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly title: string
  /** What happened and what to do. */
  readonly text: string
  /** Where to go on. */
  readonly onward?: { readonly href: string; readonly text: string } | undefined
}

/** A page that says what went wrong; in the log it is found by `requestId`, unless there is nothing to find. */
export const errorPage = (
  room: AssetRoom,
  { headers, lang = "en", onward, status, text, title }: ErrorText,
  requestId?: string
): HttpReply =>
  pageReply(
    <Document lang={lang} title={title} assets={assets().urls(room)} bodyClass="error-page">
      <main>
        <h1>{title}</h1>
        <p>{text}</p>
        {onward && (
          <p>
            <a class="button primary" href={onward.href}>
              {onward.text}
            </a>
          </p>
        )}
        {requestId && (
          <p class="request-id">
            Request: <code>{requestId}</code>
          </p>
        )}
      </main>
    </Document>,
    { status, ...(headers === undefined ? {} : { headers }) }
  )
