/**
 * New ways into the portal, which admins are told of on its home page: their own acts too, since whoever has stolen a session
 * acts in its person's name.
 */
import { Effect } from "effect"
import * as AuditRepo from "../../Auth/AuditRepo.ts"
import { week } from "../../Auth/descent.ts"
import type { Db } from "../../Sql.ts"
import { Time } from "../components/values.tsx"
import { pathOf } from "../route.ts"
import { mayAs, type Viewer } from "../Viewer.ts"

/** More are in the audit log. */
const most = 10

/** Those of the last week, newest first: of the page's account, and for operators of operators too. */
export const waysIn = (reader: Db, { owner, role }: Viewer, now: number) => {
  const whose = mayAs(role, "operator") ? [owner.account, undefined] : mayAs(role, "admin") ? [owner.account] : []
  return Effect.map(
    Effect.forEach(whose, (account) => AuditRepo.waysIn(reader, account, now - week, most), { concurrency: 1 }),
    (acts) =>
      acts
        .flat()
        .sort((a, b) => b.at - a.at || b.sequence - a.sequence)
        .slice(0, most)
  )
}

const nameOf = (who: string): string => who.slice(who.indexOf(" ") + 1)

/** What was done, in words. */
const said = ({ act, who }: AuditRepo.AuditEntry, detail: Readonly<Record<string, unknown>>): string => {
  const by = nameOf(who)
  if (act === "people invite") return `${by} invited ${detail.name} as ${detail.role}`
  if (act === "people link") return `${by} made a link for ${detail.name}`
  return act === "portal password" ? `${by} set a password` : `${by} made the passkey ${detail.name}`
}

export const WaysIn = ({
  of,
  viewer
}: {
  readonly of: ReadonlyArray<AuditRepo.AuditEntry>
  readonly viewer: Viewer
}) =>
  of.length === 0 ? null : (
    <section aria-labelledby="ways-in">
      <h2 id="ways-in">New ways in</h2>
      <ul class="needs card">
        {of.map((entry) => {
          const detail: Readonly<Record<string, unknown>> = JSON.parse(entry.detail)
          return (
            <li key={entry.sequence}>
              {said(entry, detail)}, from <code>{String(detail.address)}</code>, <Time at={entry.at} />
            </li>
          )
        })}
      </ul>
      <p class="hint">
        Of the last week; all are in the <a href={pathOf(viewer, "/audit")}>audit log</a>. If one should not be there,
        end the sessions of whoever made it, and disable whoever it let in:{" "}
        <a href={pathOf(viewer, "/people")}>People</a>.
      </p>
    </section>
  )
