/** Who did what: for an admin the acts of the account, for an operator all, from the command line too. */

import { Effect } from "effect"
import { iso } from "../../lib/moment.ts"
import * as AuditRepo from "../../Operations/AuditRepo.ts"
import { isClaimed } from "../../Operations/auditLog.ts"
import type { Secrets } from "../../Secrets.ts"
import { type Db, Reader } from "../../Sql.ts"
import { type CsvColumns, csvPieces, csvReply, fileReply, framedReply, linePieces, listed } from "../answers.tsx"
import { Chips } from "../components/Form.tsx"
import { Table, Time } from "../components/values.tsx"
import { type PortalRequest, type PortalRoute, pathOf } from "../route.ts"
import { mayAs, textOf, type Viewer, withQuery } from "../Viewer.ts"

/** The acts of the audit log in words; others are shown as they are named. */
export const actTexts: Readonly<Record<string, string>> = {
  "accounts change": "Account changed",
  "accounts create": "Account created",
  "accounts shop": "Shop settings changed",
  "addresses jump": "Addresses skipped",
  "alerts secret": "Secret of alerts shown",
  "alerts test": "Test alert sent",
  "config confirm": "Replaced wallet confirmed",
  configuration: "Configuration changed",
  claim: "Transaction claimed for a payment",
  "condition begins": "Something is wrong",
  "condition is over": "It is over",
  "invoices cancel": "Invoice cancelled",
  "keys change": "API key changed",
  "keys create": "API key created",
  "keys revoke": "API key revoked",
  "keys roll": "API key replaced",
  login: "Sign-in link made",
  "payments abandon": "Payments of a chain given up",
  "payments accept": "Money accepted",
  "invoices create": "Invoice created",
  "payments cancel": "Payment cancelled",
  "payments create": "Payment created by hand",
  "payments metadata": "Metadata of a payment changed",
  "payments refunded": "Refund recorded",
  "people disable": "Person disabled",
  "people enable": "Person enabled",
  "people invite": "Person invited",
  "people link": "Sign-in link made",
  "people revoke": "All of a person’s access ended",
  "people role": "Role changed",
  "portal login": "Signed in",
  "portal login refused": "Sign-in refused",
  "portal logout": "Signed out",
  "portal passkey": "Passkey added",
  "portal passkey --remove": "Passkey removed",
  "portal password": "Password changed",
  "portal proof": "Identity proven again",
  "portal proof refused": "Proof of identity refused",
  "portal session revoke": "Session ended",
  "refunds drop": "Refund dropped",
  reload: "Configuration read again",
  rescan: "Blocks read again",
  restore: "Backup restored",
  "sandbox pay": "Paid on the local chain",
  "secrets rotate": "Master key rotated",
  "sweep account": "Refunds of a broadcast accounted for",
  "sweep begin": "Refunds of a broadcast begun",
  "sweep record": "Money collected",
  "wallet check": "Seed shown to be held",
  "webhooks change": "Webhook endpoint changed",
  "webhooks delete": "Webhook endpoint deleted",
  "webhooks redeliver": "Delivery sent again",
  "webhooks redeliver range": "Deliveries of a range sent again",
  "webhooks register": "Webhook endpoint added",
  "webhooks secret": "Webhook secret shown",
  "webhooks secret --rotate": "Webhook secret replaced",
  "webhooks test": "Test message sent"
}

type Needs = Reader | Secrets

const filterOf = ({ owner, role }: Viewer, only = "") => ({
  since: 0,
  access: only === "access",
  account: mayAs(role, "operator") ? undefined : owner.account
})

const whose = ({ account, mode }: AuditRepo.AuditEntry): string => [account, mode].filter(Boolean).join(" ")

const detailOf = ({ detail }: AuditRepo.AuditEntry): string => {
  const fields: Record<string, unknown> = JSON.parse(detail)
  return Object.entries(fields)
    .filter(([, value]) => !Array.isArray(value) || value.length > 0)
    .map(
      ([name, value]) =>
        `${name}: ${Array.isArray(value) ? value.join(" ") : typeof value === "string" ? value : JSON.stringify(value)}`
    )
    .join(", ")
}

const show = Effect.fnUntraced(function* (viewer: Viewer, { query }: PortalRequest) {
  const reader = yield* Reader
  const path = pathOf(viewer, "/audit")
  const only = textOf(query, "only")
  const page = yield* listed(viewer, {
    ...{ path: "/audit", query, filters: { only } },
    placeOf: ({ at, sequence }: AuditRepo.AuditEntry) => ({ createdAt: at, sequence }),
    read: (before, limit) => AuditRepo.list(reader, { ...filterOf(viewer, only), before: before?.sequence, limit })
  })
  return framedReply(
    viewer,
    { section: "/audit", title: "Audit log" },
    <>
      <Chips
        label="Acts"
        options={[["access", "who was given access"]]}
        chosen={only}
        hrefOf={(value) => withQuery(path, { only: value })}
      />
      <Table
        caption="Newest first. “Claimed” is the name that a user of the command line gave"
        empty="Nobody has done anything yet."
        rows={page.rows}
        keyOf={({ sequence }) => String(sequence)}
        columns={[
          { name: "Act", cell: ({ act }) => <span title={act}>{actTexts[act] ?? act}</span> },
          { name: "Time", cell: ({ at }) => <Time at={at} /> },
          {
            name: "Who",
            cell: ({ via, who }) => (
              <span title={who}>{isClaimed(via) ? `${who} (claimed)` : who.replace(/^per_\S+ /, "")}</span>
            )
          },
          { name: "Via", cell: ({ via }) => via },
          { name: "Account", cell: (entry) => whose(entry) || "–" },
          { name: "Detail", cell: detailOf }
        ]}
      />
      <p>
        <a href={`${path}.csv`}>Export as CSV</a>, <a href={`${path}.jsonl`}>as lines of JSON</a>
      </p>
      {page.paging}
    </>,
    page.status
  )
})

/** All acts, newest first. */
const acts = (reader: Db, viewer: Viewer) => (after: AuditRepo.AuditEntry | undefined, limit: number) =>
  AuditRepo.list(reader, { ...filterOf(viewer), before: after?.sequence, limit })

/** Ids are for operators alone, since gaps between them tell how much others do. */
const columnsFor = (viewer: Viewer): CsvColumns<AuditRepo.AuditEntry> => ({
  ...(mayAs(viewer.role, "operator") ? { id: ({ sequence }) => String(sequence) } : {}),
  at: ({ at }) => iso(at),
  via: ({ via }) => via,
  who: ({ who }) => who,
  claimed: ({ via }) => String(isClaimed(via)),
  account: ({ account }) => account,
  mode: ({ mode }) => mode,
  act: ({ act }) => act,
  detail: ({ detail }) => detail
})

const asCsv = (viewer: Viewer) =>
  Effect.map(Reader, (reader) => csvReply("tilld-audit", csvPieces(columnsFor(viewer), acts(reader, viewer))))

/** As `tilld audit --json` has them. */
const asJson = (viewer: Viewer) => {
  const line = ({ account, act, at, detail, mode, sequence, via, who }: AuditRepo.AuditEntry) => {
    const id = mayAs(viewer.role, "operator") ? { id: sequence } : {}
    const fields = { at: iso(at), via, who, claimed: isClaimed(via), account, mode, act, detail: JSON.parse(detail) }
    return `${JSON.stringify({ ...id, ...fields })}\n`
  }
  return Effect.map(Reader, (reader) =>
    fileReply("tilld-audit.jsonl", "application/x-ndjson", linePieces("", line, acts(reader, viewer)))
  )
}

const reading = (path: string, handle: PortalRoute<Needs>["handle"]): PortalRoute<Needs> => ({
  ...{ method: "GET", path, role: "admin", handle }
})

export const auditRoutes: ReadonlyArray<PortalRoute<Needs>> = [
  reading("/audit", show),
  reading("/audit.csv", asCsv),
  reading("/audit.jsonl", asJson)
]
