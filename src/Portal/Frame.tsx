/** The frame of the portal's pages: whose account and which mode they show, the sections, and who is signed in. */
import type { ComponentChildren } from "preact"
import { assets } from "../Pages/assets.ts"
import { Document } from "../Pages/Document.tsx"
import { pathOf } from "./route.ts"
import { mayAs, type Role, type Viewer } from "./Viewer.ts"

interface Section {
  readonly path: string
  readonly name: string
  readonly role: Role
  /** The page of the documentation that is about it. */
  readonly guide: string
}

/** The navigation, in its order. */
const sections = [
  { path: "", name: "Home", role: "viewer", guide: "portal" },
  { path: "/payments", name: "Payments", role: "viewer", guide: "integrate" },
  { path: "/exceptions", name: "Exceptions", role: "viewer", guide: "exceptions" },
  { path: "/deliveries", name: "Deliveries", role: "viewer", guide: "deliveries" },
  { path: "/webhooks", name: "Webhooks", role: "viewer", guide: "webhooks" },
  { path: "/keys", name: "API keys", role: "viewer", guide: "keys" },
  { path: "/requests", name: "Requests", role: "viewer", guide: "deliveries" },
  { path: "/quotes", name: "Prices", role: "viewer", guide: "prices" },
  { path: "/simulate", name: "Simulate", role: "admin", guide: "sandbox" },
  { path: "/settings", name: "Settings", role: "admin", guide: "checkout" },
  { path: "/audit", name: "Audit log", role: "admin", guide: "access" },
  { path: "/health", name: "Health", role: "operator", guide: "monitoring" },
  { path: "/accounts", name: "Accounts", role: "operator", guide: "keys" },
  { path: "/people", name: "People", role: "admin", guide: "portal" }
] as const satisfies ReadonlyArray<Section>

export type SectionPath = (typeof sections)[number]["path"]

export interface FrameProps {
  readonly viewer: Viewer
  /** The section that is open. */
  readonly section: SectionPath | "/me"
  readonly title: string
  readonly children: ComponentChildren
}

const otherMode = ({ owner }: Viewer) => (owner.mode === "live" ? "test" : "live")

const guideOf = (section: FrameProps["section"]): string =>
  sections.find(({ path }) => path === section)?.guide ?? "portal"

/** A page of the portal. Its `<h1>` is the title. */
export const Frame = ({ children, section, title, viewer }: FrameProps) => (
  <Document
    lang="en"
    title={`${title} · tilld`}
    assets={assets().urls("portal")}
    bodyClass={`portal ${viewer.owner.mode}`}
  >
    <a class="skip" href="#main">
      Skip to the page
    </a>
    <header class="top">
      <a class="brand" href={pathOf(viewer)}>
        tilld
      </a>
      <span class="account">{viewer.owner.account}</span>
      <span class={`mode ${viewer.owner.mode}`}>{viewer.owner.mode === "live" ? "Live" : "Test"}</span>
      <a href={pathOf({ owner: { ...viewer.owner, mode: otherMode(viewer) } }, section === "/me" ? "" : section)}>
        Switch to {otherMode(viewer)}
      </a>
      <a class="me" href={pathOf(viewer, "/me")}>
        {viewer.name}
      </a>
      <form method="post" action="/portal/sign-out">
        <input type="hidden" name="csrf" value={viewer.csrf} />
        <button type="submit">Sign out</button>
      </form>
    </header>
    <nav aria-label="Sections">
      <ul>
        {sections
          .filter(({ role }) => mayAs(viewer.role, role))
          .map(({ name, path }) => (
            <li key={path}>
              <a href={pathOf(viewer, path)} aria-current={path === section ? "page" : undefined}>
                {name}
              </a>
            </li>
          ))}
      </ul>
    </nav>
    <main id="main">
      <h1>{title}</h1>
      {children}
      <p class="guide">
        <a href={`/guide/${guideOf(section)}`}>Guide to this page</a>
      </p>
    </main>
  </Document>
)
