import { Command } from "@effect/cli"
import { broadcastCommand } from "./sweepBroadcast.ts"
import { planCommand } from "./sweepPlan.ts"
import { signCommand } from "./sweepSign.ts"

/** `tilld sweep`: collects the money, and sends refunds. */
export const sweep = Command.make("sweep").pipe(
  Command.withDescription("Collect the money of receiving addresses, and send refunds: plan, sign offline, broadcast"),
  Command.withSubcommands([planCommand, signCommand, broadcastCommand])
)
