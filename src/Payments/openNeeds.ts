/**
 * What open payments need of the configuration: a start without it is refused. That is their chains and tokens, and chains with
 * undecided money, which only one provider reports and no person has decided on: without the chain it would be in no list.
 */
import { Array as Arr, Data, Effect, Layer } from "effect"
import { type Touched, touchedSql } from "../Chains/ledger/LedgerRepo.ts"
import { type Network, networkKey } from "../Domain/Chain.ts"
import { decimalsOn, Erc20 } from "../Domain/Currency.ts"
import { type ChainSettings, Settings } from "../Settings.ts"
import { allValues, Reader, Tx } from "../Sql.ts"

const isUndecided = `canonical = 1 AND corroborated = 0 AND listed IS NOT NULL AND tx_hash IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM payments WHERE id = receipts.payment_id AND status IN ('pending', 'detecting') AND chain = receipts.chain)
  AND NOT EXISTS (SELECT 1 FROM exceptions WHERE payment_id = receipts.payment_id AND chain = receipts.chain
    AND tx_hash = receipts.tx_hash AND closed_at IS NOT NULL)`

/** A requirement of payments on the configuration: a chain and, where they ask for one, a token there. */
export interface OpenNeed extends Network {
  /** Null for the chain's own coin, as is `contract`. */
  readonly symbol: string | null
  /** EIP-55 form. */
  readonly contract: string | null
  /** How many open payments ask for it. */
  readonly payments: number
  /** The id of the chain that has been read, in a need that is nothing else; null in others. */
  readonly chainId: number | null
  /** The decimals by which amounts of a token have been taken, where the configuration has others; null in other needs. */
  readonly decimals: number | null
  /** The ids of the payments, or the addresses of lost ones, with undecided money on the chain, as a JSON array; null where the need is another. */
  readonly undecided: string | null
}

/** SQL: every `OpenNeed`. Its parameter: the configured decimals of each symbol, see `decimalsNow`. */
export const selectOpenNeeds = `
  SELECT open.chain, open.mode, symbol, contract, payments, CAST(NULL AS BIGINT) AS chainId,
    CAST(NULL AS BIGINT) AS decimals, NULL AS undecided FROM (
    SELECT chain, mode, token, count(*) AS payments FROM payments WHERE status IN ('pending', 'detecting')
    GROUP BY chain, mode, token) AS open
  LEFT JOIN tokens ON id = token
  UNION ALL
  SELECT chain, mode, NULL, NULL, 0, chain_id, NULL, NULL FROM scans WHERE chain_id IS NOT NULL
  UNION ALL
  SELECT chain, mode, symbol, contract, 0, NULL, decimals, NULL FROM (
    SELECT *, (SELECT CAST(value ->> 'decimals' AS BIGINT) FROM json_each(?) WHERE value ->> 'chain' = tokens.chain
      AND value ->> 'mode' = tokens.mode AND value ->> 'symbol' = tokens.symbol) AS now FROM tokens) AS once
  WHERE CASE WHEN once.decimals <> now THEN EXISTS (SELECT 1 FROM payments WHERE token = once.id)
    OR EXISTS (SELECT 1 FROM receipts
      WHERE chain = once.chain AND mode = once.mode AND currency = once.symbol) ELSE FALSE END
  UNION ALL
  SELECT chain, mode, NULL, NULL, 0, NULL, NULL, json_group_array(DISTINCT coalesce(payment_id, address)) FROM receipts WHERE ${isUndecided}
  GROUP BY chain, mode`

/** Drops a chain's undecided money, until a scan finds it again. Gives whom they concern. */
export const dropUndecided = ({ chain, mode }: Network) =>
  Effect.flatMap(Tx, (tx) =>
    allValues<Touched>(
      tx,
      `UPDATE receipts SET canonical = 0 WHERE chain = ? AND mode = ? AND ${isUndecided} RETURNING ${touchedSql}`,
      [chain, mode]
    )
  )

/** Something that open payments need and the configuration does not have. */
export interface UnmetNeed {
  /** Where it belongs in the configuration. */
  readonly at: string
  readonly need: string
  readonly remedy: string
}

/** Maximum number of listed payments with undecided money. */
const mostListed = 10

const asked = (payments: number, what: string): ReadonlyArray<string> =>
  payments === 0 ? [] : [`${payments} open ${payments === 1 ? "payment needs" : "payments need"} ${what}`]

const waiting = (ids: ReadonlyArray<string>): ReadonlyArray<string> =>
  ids.length === 0
    ? []
    : [
        `money of ${ids.slice(0, mostListed).join(", ")}${ids.length > mostListed ? " and more" : ""} is not yet corroborated there`
      ]

/** The decimals of each token by the configuration, as the parameter of `selectOpenNeeds`. */
export const decimalsNow = (chains: ReadonlyArray<ChainSettings>): string =>
  JSON.stringify(
    chains.flatMap(({ chain, mode }) =>
      Erc20.literals.map((symbol) => ({ chain, mode, symbol, decimals: decimalsOn(chains, { chain, mode }, symbol) }))
    )
  )

const unmet = (at: string, needs: ReadonlyArray<string>, { chain, mode }: Network, token?: string): UnmetNeed => ({
  at,
  need: needs.join(", and "),
  remedy:
    "put it back until that is over, or until you have given it up: " +
    `tilld payments abandon --chain ${chain} --mode ${mode}${token === undefined ? "" : ` --token ${token}`}`
})

/**
 * The requirements of payments that a configuration lacks: their chains, the contracts of the tokens that open ones ask
 * for, chains with undecided money, the id of the chain that has been read, and the decimals by which amounts were
 * taken. A payer who has scanned a code pays that contract on that chain, whatever the configuration says since. A
 * wallet is not needed: addresses are stored, and watched without it.
 */
export const unmetNeeds = (
  chains: ReadonlyArray<ChainSettings>,
  needs: ReadonlyArray<OpenNeed>
): ReadonlyArray<UnmetNeed> =>
  Object.entries(Arr.groupBy(needs, networkKey)).flatMap(([key, here]) => {
    const [network] = here
    const chain = chains.find((each) => networkKey(each) === key)
    if (chain === undefined) {
      const payments = here.reduce((sum, need) => sum + need.payments, 0)
      const undecided = here.flatMap((need) => JSON.parse(need.undecided ?? "[]") as ReadonlyArray<string>)
      const lacking = [...asked(payments, "this chain"), ...waiting(undecided)]
      return lacking.length === 0 ? [] : [unmet(`chains.${key}`, lacking, network)]
    }
    return here.flatMap(({ chainId, contract, decimals, payments, symbol }) => {
      if (chainId !== null && chainId !== chain.chainId) {
        const need = `chain ${chainId} has been read here, and all that is stored is of that chain`
        return [
          { at: `chains.${key}.chain_id`, need, remedy: "put it back; another chain needs a database of its own" }
        ]
      }
      if (contract === null || symbol === null) return []
      if (decimals !== null) {
        const need = `amounts of ${contract} have been taken with ${decimals} decimals, and would be read with others`
        const remedy = "put them back; a restarted test chain needs a database of its own"
        return [{ at: `chains.${key}.tokens.${symbol}.decimals`, need, remedy }]
      }
      const token = chain.tokens.find((each) => each.symbol === symbol)
      if (token?.address === contract.toLowerCase()) return []
      return [unmet(`chains.${key}.tokens.${symbol}`, asked(payments, `the contract ${contract}`), network, symbol)]
    })
  })

/** The configuration no longer has a chain, or a token's contract, that open payments need. */
export class ChainDropped extends Data.TaggedError("ChainDropped")<{ readonly message: string }> {}

/** Refuses to start without what open payments need. */
export const refuseDroppedChains = Layer.effectDiscard(
  Effect.gen(function* () {
    const { chains } = yield* Settings
    const reader = yield* Reader
    const unmet = unmetNeeds(chains, yield* reader.all<OpenNeed>(selectOpenNeeds, [decimalsNow(chains)]))
    if (unmet.length === 0) return
    const lines = unmet.map(({ at, need, remedy }) => `  ${at}: ${need}: ${remedy}`)
    return yield* new ChainDropped({
      message: ["The configuration lacks what payments need:", ...lines].join("\n")
    })
  })
)
