import { Command, Options } from "@effect/cli"
import { Data, Effect, HashMap, Option } from "effect"
import { makeLoginLink } from "./Auth/keyOperations.ts"
import { claimTransaction, rescanBlocks } from "./Chains/repairOperations.ts"
import { showAlertSecret, testAlert } from "./Conditions/operations.ts"
import { Invocation } from "./Control/Invocation.ts"
import { accountsCommand } from "./commands/accounts.ts"
import { addresses } from "./commands/addresses.ts"
import { backupCommand } from "./commands/backup.ts"
import type { CommandNames } from "./commands/commandLine.ts"
import { config } from "./commands/config.ts"
import { doctor } from "./commands/doctor.ts"
import { invoicesCommand } from "./commands/invoices.ts"
import { keys } from "./commands/keys.ts"
import { ledgerCommand } from "./commands/ledger.ts"
import { listen } from "./commands/listen.ts"
import { complain, print, table } from "./commands/Output.ts"
import { askFor, commandOf, commandWith, decoded } from "./commands/operationCommand.ts"
import { common, controlTargetOf } from "./commands/options.ts"
import { amountsAt, paymentsCommand, refundsCommand } from "./commands/payments.ts"
import { restoreCommand } from "./commands/restore.ts"
import { sandbox, triggerCommand } from "./commands/sandbox.ts"
import { secrets } from "./commands/secrets.ts"
import { statusCommand } from "./commands/status.ts"
import { storeCommand } from "./commands/store.ts"
import { broadcastCommand } from "./commands/sweepBroadcast.ts"
import { planCommand } from "./commands/sweepPlan.ts"
import { signCommand } from "./commands/sweepSign.ts"
import { wallet } from "./commands/wallet.ts"
import { webhooksCommand } from "./commands/webhooks.ts"
import { cut } from "./lib/text.ts"
import { type AuditedActJson, listAudit } from "./Operations/auditOperation.ts"
import { nameLength } from "./Operations/inputFields.ts"
import { succeeded } from "./Webhooks/queue/retryPolicy.ts"

/** The test message did not arrive. What came of it has been printed. */
class AlertNotDelivered extends Data.TaggedError("AlertNotDelivered")<{ readonly reason: string }> {
  override get message() {
    return `the test did not arrive: ${this.reason}`
  }
}

const secret = commandOf(showAlertSecret, { print: ({ secret }) => secret })

const endingOf = ({ error, status }: { readonly error?: string | undefined; readonly status?: number | undefined }) =>
  error ?? `alerts.url answered ${status}`

const test = commandOf(testAlert, {
  print: ({ id, ...result }) => `${id}  ${endingOf(result)}`,
  failure: (result) => (succeeded(result.status) ? undefined : new AlertNotDelivered({ reason: endingOf(result) }))
})

/** `tilld alerts`: the messages that go to `alerts.url`. */
const alertsCommand = Command.make("alerts").pipe(
  Command.withDescription("Alerts: the messages that go to alerts.url"),
  Command.withSubcommands([secret, test])
)

/** `tilld rescan`: reads blocks again, in parts, each a request. Progress goes to standard error where there are several. */
const rescanCommand = commandWith("rescan", rescanBlocks.summary, rescanBlocks.fields, (json, target) =>
  Effect.gen(function* () {
    const { chain, from, mode, ...given } = yield* decoded(rescanBlocks, json)
    const place = yield* controlTargetOf(target)
    let { to } = given
    let [next, receipts, added] = [from, 0, 0]
    while (true) {
      const part = { chain, mode, from: next, ...(to === undefined ? {} : { to }) }
      const done = yield* askFor(place, rescanBlocks, part).pipe(
        Effect.tapError(() => (next > from ? complain(`Blocks ${from} to ${next - 1} have been read`) : Effect.void))
      )
      receipts += done.receipts
      added += done.added
      to = done.to
      next = done.through + 1
      if (next > to) break
      yield* complain(`block ${done.through} of ${to}, ${receipts} receipts found`)
    }
    const read = `Blocks ${from} to ${to} have been read again: ${receipts} receipts found, ${added} of them new`
    yield* print(target.json ? JSON.stringify({ chain, mode, from, to, blocks: to - from + 1, receipts, added }) : read)
  })
)

/** The user of this machine as a name: printable, and not too long. */
const nameOf = (user: string) => cut(user.replace(/\p{C}/gu, ""), nameLength) || "somebody"

/** `tilld login`: prints a one-time link into the portal. */
const loginCommand = commandOf(
  makeLoginLink,
  {
    print: ({ url }) => url,
    explain: () => "Open it in a browser. It works once, within 10 minutes: whoever has it is this person."
  },
  (json) => Effect.map(Invocation, ({ user }) => ({ name: nameOf(user), ...json }))
)

/** The daemon is loaded only here: no other command should wait for all of its modules. */
const daemon = Effect.promise(() => import("./commands/serving.ts"))

/** `tilld serve`, where the entry has not begun it already. */
const serveCommand = Command.make(
  "serve",
  {
    config: common.config,
    newDatabase: Options.boolean("new-database").pipe(
      Options.withDescription("Begin with an empty database although the one that gave out addresses is missing")
    )
  },
  ({ config, newDatabase }) => Effect.flatMap(daemon, ({ serve }) => serve(Option.getOrUndefined(config), newDatabase))
).pipe(Command.withDescription("Run the daemon until SIGTERM"))

/** `tilld claim`: counts the money of one transaction. */
const claimCommand = commandOf(claimTransaction, {
  print: ({ added, blockNumber, credits }, network, place) =>
    Effect.map(amountsAt(place), (show) =>
      [
        `It is in block ${blockNumber}; ${added === 0 ? "the ledger had all of it already, and tilld payments show says whether it counts" : `new receipts: ${added}`}`,
        ...credits.map(
          (credit) =>
            `${show(network, credit)} to ${credit.address}: ${credit.payment ?? "a payment that this database has never known"}`
        )
      ].join("\n")
    )
})

const whoOf = ({ account, claimed, mode, who }: AuditedActJson): string =>
  claimed ? `${who} (claimed)` : [who, ...(account === undefined ? [] : ["of", account]), mode ?? ""].join(" ").trim()

/** `tilld audit`: lists administrative acts. */
const auditCommand = commandOf(listAudit, {
  print: (acts) =>
    table(
      ["ID", "AT", "WHO", "VIA", "ACT", "DETAIL"],
      acts.map((act) => [String(act.id), act.at, whoOf(act), act.via, act.act, JSON.stringify(act.detail)])
    ),
  explain: (acts, { limit }) => (acts.length < limit ? undefined : `There may be more: --before ${acts.at(-1)?.id}`)
})

/** `tilld sweep`: collects the money, and sends refunds. */
const sweep = Command.make("sweep").pipe(
  Command.withDescription("Collect the money of receiving addresses, and send refunds: plan, sign offline, broadcast"),
  Command.withSubcommands([planCommand, signCommand, broadcastCommand])
)

/** Every command of the program, each in a file of its own. What runs it, and what its errors end with, is in cli.ts. */
export const tilld = Command.make("tilld").pipe(
  Command.withDescription("A self-hosted crypto payments daemon"),
  Command.withSubcommands([
    serveCommand,
    sandbox,
    config,
    keys,
    accountsCommand,
    loginCommand,
    invoicesCommand,
    paymentsCommand,
    refundsCommand,
    ledgerCommand,
    webhooksCommand,
    listen,
    triggerCommand,
    rescanCommand,
    claimCommand,
    addresses,
    wallet,
    sweep,
    secrets,
    backupCommand,
    restoreCommand,
    storeCommand,
    auditCommand,
    alertsCommand,
    statusCommand,
    doctor
  ])
)

const namesOf = <Name extends string, R, E, A>(group: Command.Command<Name, R, E, A>) =>
  Array.from(HashMap.keys(Command.getSubcommands(group))).sort()

/** The names of the commands, and of those in each group, sorted. */
export const commandNames: CommandNames = {
  all: namesOf(tilld),
  in: {
    sandbox: namesOf(sandbox),
    config: namesOf(config),
    keys: namesOf(keys),
    accounts: namesOf(accountsCommand),
    invoices: namesOf(invoicesCommand),
    payments: namesOf(paymentsCommand),
    refunds: namesOf(refundsCommand),
    webhooks: namesOf(webhooksCommand),
    addresses: namesOf(addresses),
    wallet: namesOf(wallet),
    sweep: namesOf(sweep),
    secrets: namesOf(secrets),
    store: namesOf(storeCommand),
    alerts: namesOf(alertsCommand)
  }
}
