/** The frame of the portal's pages: whose account and which mode they show, the sections, and who is signed in. */
import type { ComponentChildren } from "preact"
import { assets } from "../Pages/assets.ts"
import { Mark } from "../Pages/marks.tsx"
import { Document } from "../Pages/reply.tsx"
import { FormPlace } from "./components/Form.tsx"
import { countText, Notice } from "./components/values.tsx"
import { pathOf } from "./route.ts"
import { mayAs, mostInBadge, type Role, type Viewer } from "./Viewer.ts"

interface Section {
  readonly path: string
  readonly name: string
  readonly role: Role
  /** The page of the documentation that is about it. */
  readonly guide: string
}

/** The navigation, in its order: what a day needs first. What developers need is folded. */
const groups = {
  Money: [
    { path: "", name: "Home", role: "viewer", guide: "portal" },
    { path: "/payments", name: "Payments", role: "viewer", guide: "integrate" },
    { path: "/invoices", name: "Invoices", role: "viewer", guide: "invoices" },
    { path: "/exceptions", name: "Exceptions", role: "viewer", guide: "exceptions" },
    { path: "/ledger", name: "Ledger", role: "viewer", guide: "books" }
  ],
  Shop: [
    { path: "/settings", name: "Settings", role: "admin", guide: "checkout" },
    { path: "/quotes", name: "Prices", role: "viewer", guide: "prices" },
    { path: "/people", name: "People", role: "admin", guide: "portal" },
    { path: "/audit", name: "Audit log", role: "admin", guide: "access" }
  ],
  Operator: [
    { path: "/health", name: "Health", role: "operator", guide: "monitoring" },
    { path: "/accounts", name: "Accounts", role: "operator", guide: "keys" }
  ],
  Developers: [
    { path: "/webhooks", name: "Webhooks", role: "viewer", guide: "webhooks" },
    { path: "/deliveries", name: "Deliveries", role: "viewer", guide: "deliveries" },
    { path: "/keys", name: "API keys", role: "viewer", guide: "keys" },
    { path: "/requests", name: "Requests", role: "viewer", guide: "deliveries" }
  ]
} as const satisfies Readonly<Record<string, ReadonlyArray<Section>>>

type SectionPath = (typeof groups)[keyof typeof groups][number]["path"]

const sections: ReadonlyArray<Section> = Object.values(groups).flat()

interface PageLink {
  readonly href: string
  readonly text: string
}

export interface FrameProps {
  readonly viewer: Viewer
  /** The section that is open. */
  readonly section?: SectionPath | "/me" | undefined
  readonly title: string
  /** What is done most here, beside the title. */
  readonly action?: PageLink | undefined
  /** Beside that. */
  readonly also?: PageLink | undefined
  /** The way back, above the title. */
  readonly back?: PageLink | undefined
  /** Whether it shows what changes by itself. */
  readonly isLive?: boolean
  /** What was searched for. */
  readonly search?: string | undefined
  readonly children: ComponentChildren
}

/** The same account in the other mode. */
export const otherModeOf = ({ owner }: Viewer): Pick<Viewer, "owner"> => ({
  owner: { ...owner, mode: owner.mode === "live" ? "test" : "live" }
})

const guideOf = (section: FrameProps["section"]): string =>
  sections.find(({ path }) => path === section)?.guide ?? "portal"

/** Finds a payment from every page, by whatever names it; one hit opens. */
const Search = ({ search, viewer }: Pick<FrameProps, "search" | "viewer">) => (
  <search class="search">
    <form method="get" action={pathOf(viewer, "/payments")}>
      <input type="search" name="q" value={search} aria-label="Search" placeholder="Search payments" />
    </form>
  </search>
)

const Badge = ({ count }: { readonly count: number }) =>
  count === 0 ? null : (
    <span class="count">
      {countText(count, mostInBadge)} <span class="visually-hidden">to look at</span>
    </span>
  )

/** On a phone it is over the page, from the link in the header until one is chosen; without a script. */
const Navigation = ({ section, viewer }: Pick<FrameProps, "section" | "viewer">) => (
  <nav id="sections" aria-label="Sections">
    <a class="button menu" href="#main">
      Close the menu
    </a>
    {Object.entries(groups).map(([group, inGroup]) => {
      const shown = inGroup.filter(({ role }) => mayAs(viewer.role, role))
      const list = (
        <ul>
          {shown.map(({ name, path }) => (
            <li key={path}>
              <a href={pathOf(viewer, path)} aria-current={path === section ? "page" : undefined}>
                {name}
                <Badge count={Object.entries(viewer.badges).find(([of]) => of === path)?.[1] ?? 0} />
              </a>
            </li>
          ))}
          {group === "Developers" ? (
            <li>
              <a href="/docs">API reference</a>
            </li>
          ) : null}
        </ul>
      )
      if (shown.length === 0) return null
      return group === "Developers" ? (
        <details key={group} open={shown.some(({ path }) => path === section)}>
          <summary>{group}</summary>
          {list}
        </details>
      ) : (
        <section key={group}>
          <h2>{group}</h2>
          {list}
        </section>
      )
    })}
  </nav>
)

/** How often a page reads itself again at most, milliseconds: sums over 30 days cost more than a list. */
const listInterval = 10_000
const sumsInterval = 60_000

/** A page of the portal. Its `<h1>` is the title. */
export const Frame = ({ action, also, back, children, isLive = false, search, section, title, viewer }: FrameProps) => (
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
      <a class="button menu" href="#sections">
        Menu
      </a>
      <a class="brand" href={pathOf(viewer)}>
        <Mark of="till" /> tilld
      </a>
      <span class="account">{viewer.owner.account}</span>
      <span class={`mode ${viewer.owner.mode}`}>{viewer.owner.mode === "live" ? "Live" : "Test"}</span>
      <Search viewer={viewer} search={search} />
      <details class="person">
        <summary>{viewer.name}</summary>
        <div class="card">
          <a href={pathOf(otherModeOf(viewer), section === "/me" ? "" : section)}>
            Switch to {otherModeOf(viewer).owner.mode}
          </a>
          <a href={pathOf(viewer, "/me")}>Password, passkeys and sessions</a>
          <form method="post" action="/portal/sign-out">
            <input type="hidden" name="csrf" value={viewer.csrf} />
            <button type="submit">Sign out</button>
          </form>
        </div>
      </details>
    </header>
    <Navigation viewer={viewer} section={section} />
    <main
      id="main"
      data-changes={isLive ? pathOf(viewer, "/changes") : undefined}
      data-interval={isLive ? (section === "" ? sumsInterval : listInterval) : undefined}
    >
      {back === undefined ? null : (
        <a class="back" href={back.href}>
          ← {back.text}
        </a>
      )}
      <div class="title">
        <h1>{title}</h1>
        <div class="actions">
          {also === undefined ? null : (
            <a class="button" href={also.href}>
              {also.text}
            </a>
          )}
          {action === undefined ? null : (
            <a class="button primary" href={action.href}>
              {action.text}
            </a>
          )}
        </div>
      </div>
      {isLive ? <div role="status" data-changed="Something here has changed." data-show="Show it" /> : null}
      {viewer.done === undefined ? null : (
        <Notice tone="good" isAnswer>
          {viewer.done}
        </Notice>
      )}
      <FormPlace.Provider value={{ csrf: viewer.csrf, addressOf: (to) => pathOf(viewer, to) }}>
        {children}
      </FormPlace.Provider>
      <p class="guide">
        <a href={`/guide/${guideOf(section)}`}>Guide to this page</a>
      </p>
    </main>
  </Document>
)

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
