import { Duration, Effect } from "effect"
import { chainNames, chainTraits } from "../../src/Domain/Chain.ts"
import { merchant } from "../sim/Life.ts"
import { count, type Figure } from "./Figure.ts"
import { epoch, withNetworks } from "./virtualNetworks.ts"

// Whether the number of addresses shows in what a tick asks for. Balances have a pace of their own and are left out.

const minutes = 2

/** Payments that have just ended, whose addresses are watched for the late window. */
const seeded = (payments: number) => `
  INSERT INTO wallets (fingerprint, next_index) VALUES ('seeded', ${payments});
  INSERT INTO payments (id, checkout_token, account_id, mode, merchant_ref, amount, currency, chain, address, wallet,
    wallet_index, status, created_at, expires_at, created_head, metadata, ended_at)
  WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ${payments})
  SELECT 'pay_' || i, i, 'default', 'test', 'old-' || i, '1', 'USDC', 'base', '0x' || lower(hex(randomblob(20))), 'seeded', i,
    'expired', ${epoch} - 7200000, ${epoch} - 3600000, 0, '{}', ${epoch} - 3600000 FROM n;`

/** Header and log calls of a tick with so many addresses watched. */
const callsPerTick = (addresses: number): Promise<number> =>
  withNetworks(
    (database) => {
      database.pragma("synchronous = OFF")
      database.exec(seeded(addresses))
    },
    async ({ life, traffic }) => {
      for (const chain of chainNames) {
        const ask = {
          merchantRef: chain,
          amount: 1n,
          currency: "USDC" as const,
          chain,
          expiresIn: 3_600,
          metadata: "{}"
        }
        await life.create(ask, merchant)
      }
      await life.time.passTo(epoch + 10_000)
      for (const { serving } of traffic.values()) serving.methods.clear()
      await life.time.passTo(epoch + 10_000 + minutes * 60_000)
      let [calls, ticks] = [0, 0]
      for (const [
        chain,
        {
          serving: { methods }
        }
      ] of traffic) {
        calls += (methods.get("eth_getLogs") ?? 0) + (methods.get("eth_getBlockByNumber") ?? 0)
        ticks += (minutes * 60_000) / Duration.toMillis(Duration.decode(chainTraits[chain].pollInterval as "1 second"))
      }
      return calls / ticks
    }
  )

export const scale = (addresses: number) =>
  Effect.promise(async (): Promise<ReadonlyArray<Figure>> => {
    const few = await callsPerTick(10)
    const many = await callsPerTick(addresses)
    return [
      {
        what: `calls a tick, ${count(addresses)} addresses`,
        measured: "headers and logs, five chains",
        beside: `${few.toFixed(2)} with 10 addresses`,
        judged: many,
        floor: { atMost: 4 },
        written: (value) => value.toFixed(2)
      }
    ]
  })
