import { blockAt, bloomOfLogs } from "../Block.ts"
import { lie as lieOf } from "../Lie.ts"
import { ask, fail, heal, lie, pay, see, seeHealth, type ToldLie, telling, wait } from "../told.ts"
import { hashOf } from "../transactions.ts"

// Providers that invent receipts in every block, and what becomes of payments and of the chain's health.

const tell = telling()
const base = ["base"] as const

/** Each new block has so many invented transactions. `owns`: the provider also has them when it is asked about them again. */
const inventsInEach = (payment: string, { owns = true, perBlock = 1 } = {}): ToldLie => ({
  says: `invents ${perBlock} for ${payment} in each block`,
  make: ({ next, provider, story }) => {
    const { transaction } = story.paying(payment, 100)
    const blocks = new Map<string, number>()
    return lieOf({
      alter: (block) => {
        if (block.number < next) return block
        const invented = Array.from({ length: perBlock }, (_, i) => {
          const hash = hashOf(`${i} in ${block.number} of ${provider.traits.host}`)
          blocks.set(hash, block.number)
          return { ...transaction, hash }
        })
        const transactions = [...block.transactions, ...invented]
        return { ...block, transactions, bloom: bloomOfLogs(transactions) }
      },
      including: (hash, head) => {
        const number = owns ? blocks.get(hash) : undefined
        return [number === undefined ? [] : (blockAt(head, number) ?? [])].flat()
      }
    })
  }
})

for (const [perBlock, owns] of [
  [1, true],
  [1, false],
  [200, true]
] as const) {
  tell(
    `of three, a provider that invents ${perBlock} in each block, has them later: ${owns}, stops serving; the payment ends`,
    { chains: base, providers: 3 },
    ask("a", { expiresIn: 15 }),
    lie(0, inventsInEach("a", { owns, perBlock })),
    wait(25),
    seeHealth({ unhealthy: { 0: /contradicted/ } }),
    wait(60),
    see({ a: "expired" })
  )
}

tell(
  "of two, a provider whose inventions the other one denies is named, then stops serving; other payments confirm",
  { chains: base },
  ask("a", { expiresIn: 600 }),
  ask("b", { expiresIn: 600 }),
  lie(0, inventsInEach("a")),
  wait(3),
  seeHealth({ reason: undefined, unhealthy: {} }),
  wait(12),
  seeHealth({
    ready: true,
    unhealthy: {},
    reason: /^base-1.* denies receipts .* such as 0x\w{64} of pay_.* tilld payments show names them/
  }),
  wait(15),
  seeHealth({ unhealthy: { 0: /contradicted/ } }),
  pay("b", 1_000),
  wait(30),
  // No third provider can decide which of the two lies.
  see({ a: /^detecting/, b: "confirmed 1000" })
)

tell(
  "of two, a contradicted provider decides nothing when it alone is left, however long, and health names it",
  { chains: base },
  ask("a", { expiresIn: 600 }),
  ask("b", { expiresIn: 600 }),
  lie(0, inventsInEach("a")),
  wait(30),
  fail(1, "down"),
  pay("b", 1_000),
  wait(120),
  see({ b: "pending" }),
  seeHealth({ ready: false, reason: /contradicted|unreachable/, unhealthy: { 0: /./, 1: /./ } }),
  heal(1),
  wait(60),
  see({ b: "confirmed 1000" })
)

tell(
  "where both providers invent, the chain is read on, what both have confirms, and none decides alone",
  { chains: base },
  ask("a", { expiresIn: 600 }),
  ask("b", { expiresIn: 600 }),
  lie(0, inventsInEach("a")),
  lie(1, inventsInEach("a")),
  wait(90),
  seeHealth({
    ready: true,
    reason: /each provider denies what another one has reported: .* Remedy: /,
    unhealthy: { 0: /./, 1: /./ }
  }),
  pay("b", 1_000),
  wait(45),
  see({ b: "confirmed 1000" }),
  ask("c", { expiresIn: 600 }),
  fail(0, "down", { seconds: 150 }),
  pay("c", 1_000),
  wait(140),
  see({ c: /^(pending|detecting)/ }),
  wait(70),
  see({ c: "confirmed 1000" })
)
