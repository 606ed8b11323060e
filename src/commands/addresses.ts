import { existsSync } from "node:fs"
import { Command } from "@effect/cli"
import { BigDecimal, Effect, Layer, Option, Schema } from "effect"
import { accessTo } from "../Chains/providers/chainAccess.ts"
import { Rpc } from "../Chains/rpc/Rpc.ts"
import type { UnsweptRow } from "../Collect/candidates.ts"
import { Invocation } from "../Control/Invocation.ts"
import { ChainName, chainNames, networkKey } from "../Domain/Chain.ts"
import { decimalText } from "../Domain/Currency.ts"
import { must } from "../lib/annotations.ts"
import { quantityText } from "../lib/quantities.ts"
import { audited } from "../Operations/auditLog.ts"
import { maybe, otherwise, SomeMode } from "../Operations/inputFields.ts"
import { withFlag } from "../Operations/operation.ts"
import { jumpAddresses, withUsers } from "../Payments/addresses/addressOperations.ts"
import { noteJump } from "../Payments/addresses/numbering.ts"
import { readPrices } from "../Quotes/Prices.ts"
import { Settings, type SettingsShape } from "../Settings.ts"
import * as InstanceLock from "../Sql/InstanceLock.ts"
import * as Sql from "../Sql.ts"
import { whileLocked } from "./askDaemon.ts"
import { complain, print, table } from "./Output.ts"
import { askFor, commandWith, decoded } from "./operationCommand.ts"
import { controlTargetOf, loadSettings, mustBeFile, UsageError } from "./options.ts"
import { allReceived } from "./sweepInputs.ts"

const usdRule = "be an amount of USD such as 5 or 0.50"
/** An amount of USD. */
export const UsdField = must(usdRule, Schema.String.pipe(Schema.pattern(/^\d{1,12}(\.\d{1,6})?$/)))

const fields = {
  chain: withFlag(maybe(must(`be one of ${chainNames.join(", ")}`, ChainName)), { about: "The chain; otherwise all" }),
  mode: SomeMode,
  account: withFlag(maybe(Schema.String), { about: "Only what came for this account", value: "ID" }),
  minUsd: withFlag(
    otherwise(UsdField, () => "0"),
    { about: "Only balances worth this much in USD; otherwise all", value: "USD" }
  ),
  csv: withFlag(
    otherwise(Schema.Boolean, () => false),
    { about: "Print comma-separated values" }
  )
}

const cells = (row: UnsweptRow): ReadonlyArray<string> => [
  ...[networkKey(row), row.account, row.path ?? "", row.address, row.payments.join(" ")],
  ...[row.currency, row.decimal, row.usd ?? "", row.gasUsd ?? ""],
  row.waitsFor === undefined
    ? row.worthwhile === undefined
      ? ""
      : row.worthwhile
        ? "yes"
        : "no"
    : `after its ${row.waitsFor}`
]

const headings = [
  ...["network", "account", "path", "address", "payments"],
  ...["currency", "amount", "usd", "gas usd", "worth it"]
]

/** What there is, by network and currency. */
const totalsOf = (rows: ReadonlyArray<UnsweptRow>): ReadonlyArray<string> => {
  const totals = new Map<string, { addresses: number; usd: BigDecimal.BigDecimal }>()
  for (const row of rows) {
    const key = `${networkKey(row)} ${row.currency}`
    const total = totals.get(key) ?? { addresses: 0, usd: BigDecimal.make(0n, 2) }
    const usd = Option.getOrElse(BigDecimal.fromString(row.usd ?? "0"), () => BigDecimal.make(0n, 2))
    totals.set(key, { addresses: total.addresses + 1, usd: BigDecimal.sum(total.usd, usd) })
  }
  return Array.from(
    totals,
    ([key, { addresses, usd }]) =>
      `${key}: ${decimalText(`${BigDecimal.scale(usd, 2).value}`, 2)} USD at ${quantityText(addresses, "address")}`
  )
}

const render = (rows: ReadonlyArray<UnsweptRow>, csv: boolean): string => {
  if (csv)
    return [headings.map((heading) => heading.replace(" ", "_")), ...rows.map(cells)]
      .map((row) => row.join(","))
      .join("\n")
  if (rows.length === 0) return "Nothing waits to be collected"
  return [
    table(
      headings.map((heading) => heading.toUpperCase()),
      rows.map(cells)
    ),
    ...totalsOf(rows)
  ].join("\n")
}

/** `tilld addresses --unswept`, which is `tilld addresses unswept`: what there is to collect. */
const unswept = commandWith(
  "unswept",
  "Show what there is to collect: the receiving addresses with a balance, read from the chains",
  fields,
  (json, target) =>
    Effect.gen(function* () {
      const { account, chain, csv, minUsd, mode } = yield* decoded({ fields, input: Schema.Struct(fields) }, json)
      const settings = yield* loadSettings(target)
      const { readUnswept } = yield* Effect.promise(() => import("../Collect/candidates.ts"))
      const wanted = settings.chains.filter(
        (one) => (chain === undefined || one.chain === chain) && (mode === undefined || one.mode === mode)
      )
      if (wanted.length === 0) {
        return yield* new UsageError({
          message: `No such network is configured: there are ${settings.chains.map(networkKey).join(", ")}`
        })
      }
      const least = Option.getOrElse(BigDecimal.fromString(minUsd), () => BigDecimal.make(0n, 0))
      const rows = yield* Effect.gen(function* () {
        const prices = yield* readPrices(settings)
        const found: Array<UnsweptRow> = []
        for (const network of wanted) {
          const received = yield* allReceived(settings, { chain: network.chain, mode: network.mode }, account)
          yield* complain(`${networkKey(network)}: reading the balances of ${received.length} addresses`)
          const access = yield* accessTo(settings, { chain: network.chain, mode: network.mode })
          found.push(...(yield* readUnswept(access, received, prices.usd, least)))
        }
        return found
      }).pipe(Effect.provide(Rpc.layer))
      yield* print(target.json ? JSON.stringify(rows) : render(rows, csv))
    })
)

/** Skips addresses where no daemon runs: its next start must not hand out what a snapshot has forgotten. */
const jumpDirectly = Effect.fn("commands.jumpDirectly")(function* (settings: SettingsShape, by: number) {
  const { user: who } = yield* Invocation
  const { path } = settings.database
  yield* mustBeFile(settings, "start tilld, and give the command at the node that works")
  if (!existsSync(path)) {
    return yield* new UsageError({ message: `There is no database ${path}: no address has been handed out` })
  }
  yield* Effect.retry(InstanceLock.acquire(path, "addresses jump"), whileLocked)
  return yield* Effect.provide(
    audited({ via: "direct", who }, { act: jumpAddresses.name, detail: { by } }, () =>
      Effect.flatMap(noteJump(by), withUsers)
    ),
    Layer.merge(Sql.layer(path), Layer.succeed(Settings, settings))
  )
}, Effect.scoped)

/** `tilld addresses jump`: beside a daemon, and without one. */
const jump = commandWith("jump", jumpAddresses.summary, jumpAddresses.fields, (json, target) =>
  Effect.gen(function* () {
    const input = yield* decoded(jumpAddresses, json)
    const place = yield* controlTargetOf(target)
    const jumped = yield* Effect.catchTag(
      askFor(place, jumpAddresses, input),
      "DaemonAbsent",
      Effect.fnUntraced(function* (absent) {
        return yield* "socket" in place ? absent : jumpDirectly(place, input.by)
      })
    )
    if (target.json) return yield* print(JSON.stringify(jumped))
    const rows = jumped.map(({ from, next, usedBy, wallet }) => [
      ...[wallet, `${from}`, `${next}`],
      usedBy.join(", ") || "nobody now"
    ])
    yield* print(
      rows.length === 0
        ? `No wallet has been used yet; each begins ${input.by} further`
        : table(["WALLET", "FROM", "NEXT INDEX", "USED BY"], rows)
    )
  })
)

/** `tilld addresses`: what they hold, and their numbering. */
export const addresses = Command.make("addresses").pipe(
  Command.withDescription("Receiving addresses; tilld addresses --unswept is tilld addresses unswept"),
  Command.withSubcommands([unswept, jump])
)

/** `tilld addresses --unswept` is `tilld addresses unswept`. */
export const withUnswept = (words: ReadonlyArray<string>): ReadonlyArray<string> =>
  words[2] !== "addresses" || words[3] !== "--unswept" ? words : [...words.slice(0, 3), "unswept", ...words.slice(4)]
