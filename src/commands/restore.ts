import { Args, Command, Options } from "@effect/cli"
import { Duration, Effect, Option } from "effect"
import type { Restored } from "../Backup/restore.ts"
import { Invocation } from "../Control/Invocation.ts"
import { networkKey } from "../Domain/Chain.ts"
import { decimalsOf, formatAmount } from "../Domain/Currency.ts"
import { quantityText } from "../lib/quantities.ts"
import { blindJump } from "../Payments/addresses/IndexMark.ts"
import * as InstanceLock from "../Sql/InstanceLock.ts"
import { whileLocked } from "./askDaemon.ts"
import { print, table } from "./Output.ts"
import { common, fileOption, loadSettings, mustBeFile } from "./options.ts"

const head = ({ database, file, gapSeconds, kept, madeAt, masterKey, migrates, newest, overruled, schema }: Restored) =>
  [
    `${database} is restored from ${file}${madeAt === null ? "" : `, made ${madeAt}`}.`,
    newest === null
      ? "It has no payment yet."
      : `Its newest change is of ${newest}: ${Duration.format(Duration.seconds(gapSeconds ?? 0))} are missing.`,
    ...(kept === null ? [] : [`The former database is kept as ${kept}.`]),
    `Master key: ${masterKey}.`,
    ...(migrates ? [`Its schema ${schema} is migrated at the next start.`] : []),
    ...overruled.map((objection) => `Overruled by --force: ${objection}.`)
  ].join("\n")

/** Without its key, addresses of a wallet cannot be derived. */
const unwatched = ({ wallets }: Restored): ReadonlyArray<string> => {
  const unused = wallets.filter(({ usedBy }) => usedBy.length === 0).map(({ wallet }) => wallet)
  return unused.length === 0
    ? []
    : [
        `NOT WATCHED: the skipped addresses of ${unused.join(", ")}, whose extended public key neither the configuration nor an`,
        "account has. Money that came there for payments that the backup lacks is not found. Configure that key for the next start,",
        "as wallets.live or wallets.test: they stay watched from then on, also when another key takes its place again."
      ]
}

const skipped = (restored: Restored) => {
  const { paymentsInLastDay, wallets } = restored
  return [
    "Addresses: the next start skips these indexes of each wallet that is in use and watches them, so that no address is given",
    "twice and money of lost payments becomes an exception (tilld payments exceptions).",
    table(
      ["WALLET", "SKIPPED FROM", "NEXT INDEX", "USED BY"],
      wallets.map(({ from, next, usedBy, wallet }) => [wallet, `${from}`, `${next}`, usedBy.join(", ") || "nobody now"])
    ),
    ...unwatched(restored),
    `The backup's last day had ${quantityText(paymentsInLastDay, "payment")}. If more than ${blindJump} may have been created since it,`,
    "run tilld addresses jump --by N now, before tilld is started."
  ].join("\n")
}

const open = ({ oldestOpenPayment, openPayments, pastDuePayments, pendingDeliveries }: Restored) =>
  [
    openPayments === 0
      ? "Payments: none is open in the backup."
      : `Payments: ${openPayments} open in the backup, the oldest of ${oldestOpenPayment}, ${pastDuePayments} past due. The next start brings them up to date from the chains.`,
    pendingDeliveries === 0
      ? "Deliveries: none is pending in the backup."
      : `Deliveries: ${pendingDeliveries} pending in the backup. Those made since are made again, with the same event ids.`
  ].join("\n")

/** What is undone, and what follows from it. */
const undone: Readonly<Record<keyof NonNullable<Restored["lost"]>, string>> = {
  payments: "payments created: money for them becomes an exception",
  changedPayments: "payments with another status: found again, with the same event ids",
  invoices: "invoices created: they have no page any more",
  exceptions: "exceptions opened: found again",
  decisions: "exceptions decided: to be decided again",
  refunds: "refunds noted: to be noted again",
  events: "events",
  deliveries: "deliveries",
  accounts: "accounts created",
  people: "people invited",
  keys: "API keys created: they do not work any more",
  revokedKeys: "API keys revoked: THEY WORK AGAIN, revoke them",
  endpoints: "webhook endpoints registered: they get none any more",
  deletedEndpoints: "webhook endpoints deleted: THEY GET WEBHOOKS AGAIN, delete them",
  acts: "administrative acts: do again what still counts"
}

/** Exceptions do not name the orders that this money was for: the backup lacks them. */
const paid = ({ lostMoney }: Restored): ReadonlyArray<string> =>
  lostMoney.length === 0
    ? []
    : [
        "Decide on the money of these orders, at most the newest 100: the backup lacks their payments, so that it becomes exceptions",
        "without their names (tilld payments exceptions).",
        table(
          ["ORDER", "PAYMENT", "NETWORK", "ADDRESS", "RECEIVED"],
          lostMoney.map(({ address, amount, currency, decimals, merchantRef, payment, ...network }) => [
            ...[merchantRef, payment, networkKey(network), address],
            formatAmount(amount, currency, decimals ?? decimalsOf[currency])
          ])
        )
      ]

const known = (lost: NonNullable<Restored["lost"]>, restored: Restored) => {
  const { kept, newest } = restored
  const rows = Object.entries(undone).flatMap(([what, text]) => {
    const count = lost[what as keyof typeof lost]
    return count === 0 ? [] : [[`${count}`, text]]
  })
  return rows.length === 0
    ? "Undone: nothing that the former database has."
    : [
        `Undone, of what the former database has:\n${table(["COUNT", "WHAT"], rows)}`,
        ...paid(restored),
        ...(lost.acts === 0
          ? []
          : [
              `The acts: sqlite3 ${kept} "SELECT datetime(at / 1000, 'unixepoch'), who, act, detail FROM audit WHERE at > ${newest === null ? 0 : Date.parse(newest)}"`
            ])
      ].join("\n")
}

const unknown = ({ newest }: Restored) =>
  [
    `Undone: everything after ${newest ?? "the backup"}. There was no former database to compare with: compare with the orders of your shop.`,
    "- Payments created since are not known: money for them becomes an exception.",
    "- API keys that were revoked since work again, and new ones do not: revoke and create them again.",
    "- Webhook endpoints that were deleted since get webhooks again, new ones get none, and former secrets sign.",
    "- Payments confirmed since are confirmed again, and their webhooks sent again with the same event ids."
  ].join("\n")

const start = ({ refusals }: Restored) =>
  refusals.length === 0
    ? "Start tilld now."
    : [
        "tilld does not start with this configuration, which lacks what payments of the backup need:",
        ...refusals.map(({ at, need, remedy }) => `  ${at}: ${need}: ${remedy}`),
        "tilld config check says whether it would start."
      ].join("\n")

/** What has to be looked at after a restore, for people. */
export const renderRestored = (restored: Restored): string =>
  [
    head(restored),
    skipped(restored),
    open(restored),
    restored.lost === null ? unknown(restored) : known(restored.lost, restored),
    start(restored)
  ].join("\n\n")

/** Loaded only here: it needs the store. */
const restoring = Effect.promise(() => import("../Backup/restore.ts"))

/** `tilld restore`: with no daemon running. */
export const restoreCommand = Command.make(
  "restore",
  {
    ...common,
    identity: fileOption("identity", "The age identity that decrypts the backup: a file with AGE-SECRET-KEY-1…"),
    force: Options.boolean("force").pipe(
      Options.withDescription(
        "Also replace newer data, which is kept beside, and take a file without SHA-256 or with other wallets"
      )
    ),
    file: Args.text({ name: "file" }).pipe(Args.withDescription("What tilld backup has made"))
  },
  Effect.fnUntraced(function* ({ file, force, identity, json, ...rest }) {
    const { env, user: who } = yield* Invocation
    const settings = yield* loadSettings(rest)
    yield* mustBeFile(
      settings,
      "restore its own backup; a file is moved there by tilld store copy (docs/two-machines.md)"
    )
    const { restore } = yield* restoring
    const restored = yield* Effect.scoped(
      Effect.zipRight(
        Effect.retry(InstanceLock.acquire(settings.database.path, "restore"), whileLocked),
        restore({ file, force, identity: Option.getOrUndefined(identity), settings, env, who })
      )
    )
    yield* print(json ? JSON.stringify(restored) : renderRestored(restored))
  })
).pipe(
  Command.withDescription(
    "Put a backup in the place of the database, and report what must be looked at. Needs no running daemon"
  )
)
