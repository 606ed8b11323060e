import type { ComponentChildren } from "preact"
import type { AssetUrls } from "./assets.ts"

export interface DocumentProps {
  /** BCP 47 language tag. */
  readonly lang: string
  readonly title: string
  readonly assets: AssetUrls
  /** More elements of the head. */
  readonly head?: ComponentChildren
  readonly bodyClass?: string
  readonly children: ComponentChildren
}

/** The frame of every page: title, stylesheet, and the script, which the page also works without. */
export const Document = ({ assets, bodyClass, children, head, lang, title }: DocumentProps) => (
  <html lang={lang}>
    <head>
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <meta name="color-scheme" content="light dark" />
      <meta name="robots" content="noindex" />
      <title>{title}</title>
      <link rel="stylesheet" href={assets.style} />
      <link rel="icon" href="data:," />
      {head}
      <script type="module" src={assets.script} />
    </head>
    <body class={bodyClass}>{children}</body>
  </html>
)
