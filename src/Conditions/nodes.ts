/** What is wrong with the nodes on one PostgreSQL, and with its own standbys, as the node that works sees it. */
import { Effect } from "effect"
import packageJson from "../../package.json" with { type: "json" }
import { quantityText } from "../lib/quantities.ts"
import type { SettingsShape } from "../Settings.ts"
import { lookAtNodes, type Nodes } from "../Sql/postgres/nodes.ts"
import type { Reader } from "../Sql.ts"
import { type Condition, conditionIf, conditionOf } from "./standing.ts"

/** Of an hour: an upgrade of both nodes takes two. */
const mostTakeovers = 3
/** Bytes of PostgreSQL's log that a standby of its own may lack: a file of it. */
const mostBehind = 16 * 1024 * 1024

const ownOf = ({ node: { name } }: SettingsShape) => ({ node: name, version: packageJson.version })

/** The nodes beside this one; undefined where the data is in a file. */
export const readNodes = (settings: SettingsShape, reader: Reader["Type"]) =>
  settings.postgres === undefined ? Effect.succeed(undefined) : lookAtNodes(reader, ownOf(settings))

/** The judgement of them. */
export const makeNodes = (settings: SettingsShape, reader: Reader["Type"]) => {
  const own = ownOf(settings)
  const name = own.node
  /** Standbys of PostgreSQL that have been there. */
  const known = new Set<string>()

  const ofReplicas = (replicas: Nodes["replicas"]): ReadonlyArray<Condition> => {
    for (const one of replicas) known.add(one.name)
    return [...known].flatMap((subject) => {
      const behind = replicas.flatMap((one) => (one.name === subject ? [one.behind ?? 0] : []))
      // Standbys may have one name.
      const most = behind.length === 0 ? Number.POSITIVE_INFINITY : Math.max(...behind)
      const remedy =
        "see its log, and pg_stat_replication: until it has caught up the loss of the primary loses what it lacks"
      const wrong = behind.length === 0 ? "is not connected any more" : `lacks ${Math.round(most / 1e6)} MB`
      const summary = `the standby ${subject} of PostgreSQL ${wrong}`
      return conditionIf(most > mostBehind, "replica_behind", subject, summary, remedy)
    })
  }

  const ofNodes = ({ replicas, standbys, takeovers }: Nodes): ReadonlyArray<Condition> => [
    ...conditionIf(
      standbys.length === 0,
      "no_standby",
      "",
      `no other node waits to take over from ${name}`,
      "start it: systemctl start tilld there; each needs a node.name of its own"
    ),
    ...standbys.flatMap(({ node, version }) =>
      version === own.version
        ? []
        : [
            conditionOf(
              "versions_differ",
              node,
              `the standby ${node} has tilld ${version}, and ${name}, which works, has ${own.version}`,
              "install the newer one on both: the standby first"
            )
          ]
    ),
    ...conditionIf(
      takeovers > mostTakeovers,
      "lease_moves",
      "",
      `nodes took over ${quantityText(takeovers, "time")} within the last hour, each with some seconds without sales`,
      "the log of each node says why it gave up: it lost PostgreSQL, hung, or ended by an error"
    ),
    ...ofReplicas(replicas)
  ]

  return Effect.map(readNodes(settings, reader), (nodes) => (nodes === undefined ? [] : ofNodes(nodes)))
}
