import type { ComponentChildren } from "preact"
import { assets } from "../Pages/assets.ts"
import { Document } from "../Pages/Document.tsx"

export interface OutsideProps {
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
