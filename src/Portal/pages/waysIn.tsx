/**
 * New ways into the portal, shown to admins on its home page: their own acts too, since a thief of a session
 * acts in its person's name.
 */
import { Effect } from "effect"
import { Fragment } from "preact"
import { week } from "../../Auth/descent.ts"
import * as AuditRepo from "../../Operations/AuditRepo.ts"
import type { Db } from "../../Sql.ts"
import { Time } from "../components/values.tsx"
import { pathOf } from "../route.ts"
import { mayAs, type Viewer } from "../Viewer.ts"

/** People whose acts are shown, and how many of each. More are in the audit log. */
const most = { people: 10, acts: 3 }

/** Those of the last week: of the page's account, and for operators of operators too. */
export const waysIn = (reader: Db, { owner, role }: Viewer, now: number) => {
  const whose = mayAs(role, "operator") ? [owner.account, undefined] : mayAs(role, "admin") ? [owner.account] : []
  return Effect.map(
    Effect.forEach(whose, (account) => AuditRepo.waysIn(reader, account, now - week, most), { concurrency: 1 }),
    (found) => found.flat()
  )
}

const nameOf = (who: string): string => who.slice(who.indexOf(" ") + 1)

/** What was done, in words. */
const said = ({ act, who }: AuditRepo.AuditEntry, detail: Readonly<Record<string, unknown>>): string => {
  const by = nameOf(who)
  if (act === "people invite") return `${by} invited ${detail.name} as ${detail.role}`
  if (act === "people link") return `${by} made a link for ${detail.name}`
  if (act === "people enable") return `${by} enabled ${detail.name} again`
  if (act === "people role") return `${by} made ${detail.name} ${detail.to === "admin" ? "an admin" : "a viewer"}`
  return act === "portal password" ? `${by} set a password` : `${by} made the passkey ${detail.name}`
}

const WayIn = ({ entry }: { readonly entry: AuditRepo.AuditEntry }) => {
  const detail: Readonly<Record<string, unknown>> = JSON.parse(entry.detail)
  return (
    <li>
      {said(entry, detail)}, from <code>{String(detail.address)}</code>, <Time at={entry.at} />
    </li>
  )
}

export const WaysIn = ({ of, viewer }: { readonly of: ReadonlyArray<AuditRepo.WayIn>; readonly viewer: Viewer }) =>
  of.length === 0 ? null : (
    <section aria-labelledby="ways-in">
      <h2 id="ways-in">Recent sign-in changes</h2>
      <ul class="card">
        {of.map((entry) => (
          <Fragment key={entry.sequence}>
            <WayIn entry={entry} />
            {entry.place === most.acts && entry.acts > most.acts ? (
              <li>
                and {entry.acts - most.acts} more by {nameOf(entry.who)}
              </li>
            ) : null}
          </Fragment>
        ))}
      </ul>
      <p class="hint">
        Don’t recognise one? End that person’s sessions under <a href={pathOf(viewer, "/people")}>People</a>. The{" "}
        <a href={pathOf(viewer, "/audit")}>audit log</a> has more.
      </p>
    </section>
  )
