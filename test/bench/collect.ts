import { Effect } from "effect"
import { type Address, encodeFunctionData, erc20Abi, type Hash, type Hex, numberToHex } from "viem"
import { collecting } from "../Collect/collecting.ts"
import { count, type Figure, times } from "./Figure.ts"

// What collecting USDC from 50 addresses takes, beside the plain way with the same contract: gas to each, then a transfer.

const addresses = 50
const usd = 10n ** 6n
const ether = 10n ** 18n

const measure = Effect.gen(function* () {
  const scene = yield* collecting()
  const { local } = scene
  yield* scene.pay("USDC", addresses, 20n * usd)
  yield* local.payNative({ to: scene.sponsor, amount: ether })
  yield* local.mine()
  const gasOf = (hashes: ReadonlyArray<string>) =>
    Effect.reduce(hashes, 0n, (sum, hash) =>
      Effect.map(
        local.rpc<{ readonly gasUsed: Hex }>("eth_getTransactionReceipt", [hash]),
        ({ gasUsed }) => sum + BigInt(gasUsed)
      )
    )
  const snapshot = yield* local.snapshot
  const started = performance.now()
  const { plan } = yield* scene.plan({ received: scene.received(addresses) })
  const planned = performance.now() - started
  yield* scene.mining
  const { result } = yield* scene.send(yield* scene.sign(plan))
  const sent = [...new Set(result.transfers.map(({ hash }) => hash))]
  const signed = yield* gasOf(sent)

  yield* local.revert(snapshot)
  const plain: Array<Hash> = []
  const token = local.tokens.USDC?.address
  const data = encodeFunctionData({ abi: erc20Abi, functionName: "transfer", args: [scene.destination, 20n * usd] })
  for (let index = 0; index < addresses; index++) {
    const from = scene.wallet.address(index) as Address
    yield* local.rpc("anvil_impersonateAccount", [from])
    plain.push(yield* local.send({ to: from, value: ether / 1_000n, gas: 21_000n }))
    yield* local.mine()
    plain.push(yield* local.rpc<Hash>("eth_sendTransaction", [{ from, to: token, data, gas: numberToHex(200_000) }]))
  }
  yield* local.mine()
  return {
    transactions: sent.length,
    gas: signed,
    plainTransactions: plain.length,
    plainGas: yield* gasOf(plain),
    planned
  }
}).pipe(Effect.scoped)

export const collect = Effect.map(
  measure,
  ({ gas, plainGas, plainTransactions, planned, transactions }): ReadonlyArray<Figure> => [
    {
      what: `collect USDC of ${addresses}: transactions`,
      measured: `planned in ${planned.toFixed(0)} ms`,
      beside: `${plainTransactions} that fund and transfer`,
      judged: transactions,
      floor: { atMost: 1 },
      written: count
    },
    {
      what: `collect USDC of ${addresses}: gas`,
      measured: `${count(Number(gas))} gas`,
      beside: `${count(Number(plainGas))} to fund and transfer`,
      judged: Number(gas) / Number(plainGas),
      floor: { atMost: 1 },
      written: times
    }
  ]
)
