import { Command } from "@effect/cli"
import { HashMap } from "effect"
import { accountsCommand } from "./commands/accounts.ts"
import { addresses } from "./commands/addresses.ts"
import { alertsCommand } from "./commands/alerts.ts"
import { auditCommand } from "./commands/audit.ts"
import { backupCommand } from "./commands/backup.ts"
import { claimCommand } from "./commands/claim.ts"
import { config } from "./commands/config.ts"
import { doctor } from "./commands/doctor.ts"
import { keys } from "./commands/keys.ts"
import { listen } from "./commands/listen.ts"
import { loginCommand } from "./commands/login.ts"
import { paymentsCommand } from "./commands/payments.ts"
import { rescanCommand } from "./commands/rescan.ts"
import { restoreCommand } from "./commands/restore.ts"
import { sandbox } from "./commands/sandbox.ts"
import { secrets } from "./commands/secrets.ts"
import { serveCommand } from "./commands/serve.ts"
import { sweep } from "./commands/sweep.ts"
import { triggerCommand } from "./commands/trigger.ts"
import type { CommandNames } from "./commands/usage.ts"
import { wallet } from "./commands/wallet.ts"
import { webhooksCommand } from "./commands/webhooks.ts"

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
    paymentsCommand,
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
    auditCommand,
    alertsCommand,
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
    payments: namesOf(paymentsCommand),
    webhooks: namesOf(webhooksCommand),
    addresses: namesOf(addresses),
    wallet: namesOf(wallet),
    sweep: namesOf(sweep),
    secrets: namesOf(secrets),
    alerts: namesOf(alertsCommand)
  }
}
