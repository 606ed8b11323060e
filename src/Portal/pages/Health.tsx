/** How the daemon is doing, for operators: chains and providers, queues, the store, and what asks for a person. */
import { statSync } from "node:fs"
import { Effect } from "effect"
import packageJson from "../../../package.json" with { type: "json" }
import { makeReport } from "../../Admin/readiness.ts"
import type { ChainHealth, Chains } from "../../Chains.ts"
import { Conditions, type HeldCondition, keyOf } from "../../Conditions/standing.ts"
import { networkKey } from "../../Domain/Chain.ts"
import type { Severity } from "../../Domain/Condition.ts"
import { bytesText } from "../../lib/quantities.ts"
import { Settings, type SettingsShape } from "../../Settings.ts"
import { Reader } from "../../Sql.ts"
import type { Dispatcher } from "../../Webhooks/Dispatcher.ts"
import { countTriedAgain } from "../../Webhooks/queue/DeliveryLogRepo.ts"
import { countLimit } from "../../Webhooks/queue/LanesRepo.ts"
import { framedReply } from "../answers.tsx"
import { Chain, countText, Facts, Status, Table, Time, type Tone } from "../components/values.tsx"
import { type PortalHandler, type PortalRoute, pageRoute, pathOf } from "../route.ts"

type Needs = Chains | Conditions | Dispatcher | Reader | Settings

const Ready = ({ of }: { readonly of: boolean }) => (
  <Status of={of ? "ready" : "not ready"} tone={of ? "good" : "bad"} />
)

const Providers = ({ of: { providers } }: { readonly of: ChainHealth }) => (
  <ul class="plain">
    {providers.map(({ healthy, host, reason }, place) => (
      <li key={`${place} ${host}`}>
        <Status of={healthy ? "healthy" : "unhealthy"} /> {host}
        {reason === undefined ? null : `: ${reason}`}
      </li>
    ))}
  </ul>
)

const ChainTable = ({ chains }: { readonly chains: ReadonlyArray<ChainHealth> }) => (
  <Table
    caption="Chains"
    rows={chains}
    keyOf={networkKey}
    empty="No chain is configured."
    columns={[
      {
        name: "Chain",
        cell: ({ chain, mode }) => (
          <>
            <Chain of={chain} /> ({mode})
          </>
        )
      },
      {
        name: "Status",
        cell: ({ ready, reason }) => (
          <>
            <Ready of={ready} /> {reason}
          </>
        )
      },
      { name: "Read up to block", numeric: true, cell: ({ head }) => head ?? "none yet" },
      { name: "Behind by", numeric: true, cell: ({ lagBlocks }) => lagBlocks ?? "unknown" },
      { name: "Providers", cell: (chain) => <Providers of={chain} /> }
    ]}
  />
)

const tones: Readonly<Record<Severity, Tone>> = { page: "bad", ticket: "warning", note: "neutral" }

const ConditionTable = ({ conditions }: { readonly conditions: ReadonlyArray<HeldCondition> }) => (
  <Table
    caption="What is wrong"
    rows={conditions}
    keyOf={keyOf}
    empty="Nothing is wrong."
    columns={[
      { name: "Severity", cell: ({ severity }) => <Status of={severity} tone={tones[severity]} /> },
      { name: "What", cell: ({ summary }) => summary },
      { name: "What to do", cell: ({ remedy }) => remedy },
      { name: "Since", cell: ({ since }) => <Time at={since} /> }
    ]}
  />
)

/** There is no write-ahead log before the first write. */
const fileSize = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

const storeFacts = ({ database: { path } }: SettingsShape) => ({
  "Database file": bytesText(fileSize(path)),
  "Write-ahead log": bytesText(fileSize(`${path}-wal`))
})

interface WorkerState {
  readonly name: string
  readonly ready: boolean
  readonly reason?: string | undefined
}

const WorkerTable = ({ workers }: { readonly workers: ReadonlyArray<WorkerState> }) => (
  <Table
    caption="Workers"
    rows={workers}
    keyOf={({ name }) => name}
    empty="There is none."
    columns={[
      { name: "Worker", cell: ({ name }) => name },
      { name: "Status", cell: ({ ready }) => <Ready of={ready} /> },
      { name: "Why", cell: ({ reason }) => reason ?? "–" }
    ]}
  />
)

const health: PortalHandler<Needs> = Effect.fnUntraced(function* (viewer) {
  const settings = yield* Settings
  const { chains, dispatcher, ready, workers } = yield* Effect.flatten(makeReport)
  const conditions = yield* Effect.flatMap(Conditions, ({ now }) => now)
  const failing = yield* countTriedAgain(yield* Reader, countLimit)
  return framedReply(
    viewer,
    { section: "/health", title: "Health" },
    <>
      <section class="card">
        <Facts
          of={{
            Status: <Ready of={ready} />,
            Version: `tilld ${packageJson.version}, Node ${process.version}`,
            "Running for": `${Math.floor(process.uptime() / 3600)} h ${Math.floor((process.uptime() % 3600) / 60)} min`,
            "Deliveries due now": dispatcher.due,
            "Deliveries failing, of all accounts":
              failing === 0 ? (
                "none"
              ) : (
                <a class="bad" href={pathOf(viewer, "/deliveries?status=failing")}>
                  {countText(failing, countLimit)}
                </a>
              ),
            "Oldest due for": `${Math.ceil(dispatcher.oldestDueMillis / 1000)} s`,
            ...storeFacts(settings)
          }}
        />
      </section>
      <ConditionTable conditions={conditions} />
      <ChainTable chains={chains} />
      <details open={workers.some((worker) => !worker.ready)}>
        <summary>
          {workers.filter((worker) => worker.ready).length} of {workers.length} workers are ready
        </summary>
        <WorkerTable workers={workers.toSorted((a, b) => Number(a.ready) - Number(b.ready))} />
      </details>
      <p class="hint">
        <code>tilld doctor</code> checks more: providers, token contracts, wallets, the clock and the whole database.
      </p>
    </>
  )
})

export const healthRoutes: ReadonlyArray<PortalRoute<Needs>> = [pageRoute("/health", "operator", health)]
