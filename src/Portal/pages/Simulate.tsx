/** Payments of test money on local chains: paid, underpaid, overpaid, with the wrong token, on the wrong chain, left to expire; and reorgs. */
import { Effect, Schema } from "effect"
import type { Owner } from "../../Domain/Account.ts"
import { ApiError, invalid } from "../../Domain/ApiError.ts"
import { type ChainName, chainNames, chainTraits } from "../../Domain/Chain.ts"
import { nativeToken, PaymentCurrency } from "../../Domain/Currency.ts"
import { randomToken } from "../../Domain/Ids.ts"
import type { Payment } from "../../Domain/Payment.ts"
import { paymentObject } from "../../Events/paymentObject.ts"
import { maybe, must } from "../../lib/annotations.ts"
import { type Actor, audited } from "../../Operations/auditLog.ts"
import { seeOther } from "../../Pages/reply.tsx"
import { Payments } from "../../Payments.ts"
import { type LocalNetwork, localChainIn, smallAmounts } from "../../Sandbox/local.ts"
import { payFor, reorg } from "../../Sandbox/pay.ts"
import { Settings, type SettingsShape } from "../../Settings.ts"
import type { StoreUnavailable, Writer } from "../../Sql.ts"
import { actOn, framedReply } from "../answers.tsx"
import { blank, type FormState, PostForm, Select, TextField } from "../components/Form.tsx"
import { Notice } from "../components/values.tsx"
import { bodyOfForm, givenOf } from "../fields.ts"
import { afterDone, formRoute, type PortalHandler, type PortalRoute, pageRoute, pathOf } from "../route.ts"
import type { Viewer } from "../Viewer.ts"
import { assetsOf, createByHand } from "./NewPayment.tsx"

const section = "/simulate"

const scenarios = [
  ["all", "Pay all that is missing"],
  ["half", "Underpay: half of what is missing"],
  ["more", "Overpay: a tenth too much"],
  ["wrong_token", "Pay with another token"],
  ["wrong_chain", "Pay on another chain"],
  ["nothing", "Send nothing: a new one expires after a minute"]
] as const

const Scenario = Schema.Literal("all", "half", "more", "wrong_token", "wrong_chain", "nothing")
type Scenario = typeof Scenario.Type
const isCurrency = Schema.is(PaymentCurrency)

/** The deepest reorg that a local chain keeps states for. */
const deepest = 32

type Chains = SettingsShape["chains"]

const localsOf = (chains: Chains): ReadonlyArray<LocalNetwork> =>
  chainNames.flatMap((name) => localChainIn(chains, name) ?? [])

/** Why there is nothing to simulate; undefined where there is. */
const whyNot = (viewer: Viewer, chains: Chains) => {
  if (viewer.owner.mode === "live") {
    const test = pathOf({ owner: { ...viewer.owner, mode: "test" } }, section)
    return (
      <>
        Payments are simulated in test mode alone: live money is not for trying things out. <a href={test}>Test mode</a>
      </>
    )
  }
  if (localsOf(chains).length > 0) return undefined
  return (
    <>
      No chain of the test mode is a local one, at http://127.0.0.1 with a port, and the coins of a public test network
      are not tilld’s to spend. <code>npm run sandbox</code> starts a daemon with local chains.
    </>
  )
}

interface Forms {
  readonly pay: FormState
  readonly reorg: FormState
}

const labels = {
  asset: "Currency and chain",
  payment: "Payment",
  scenario: "What happens",
  chain: "Chain",
  depth: "Blocks"
}

const formsOf = (payment: string): Forms => ({
  pay: blank("pay", { payment }),
  reorg: blank("reorg", { depth: "3" })
})

const page = (viewer: Viewer, chains: Chains, forms: Forms, said?: string, status = 200) => {
  const reason = whyNot(viewer, chains)
  const locals = localsOf(chains)
  const isLocal = (asset: string) => locals.some(({ name }) => asset.endsWith(`-${name}`))
  return framedReply(
    viewer,
    { section, title: "Simulate" },
    reason === undefined ? (
      <>
        {said === undefined ? null : (
          <Notice tone="good" isAnswer>
            {said}
          </Notice>
        )}
        <div class="cards">
          <section class="card" aria-labelledby="pay-title">
            <h2 id="pay-title">A payment</h2>
            <PostForm of={forms.pay} to={`${section}/pay`} submit="Send it" labels={labels}>
              <TextField name="payment" placeholder="pay_…" hint="Leave blank for a new one, in this currency:" />
              <Select name="asset" options={assetsOf(chains, "test").filter(([asset]) => isLocal(asset))} />
              <Select name="scenario" options={scenarios} />
            </PostForm>
          </section>
          <section class="card" aria-labelledby="reorg-title">
            <h2 id="reorg-title">A reorg</h2>
            <p>Replaces a chain’s last blocks by empty ones: payments in them are gone, of every account.</p>
            <PostForm of={forms.reorg} to={`${section}/reorg`} submit="Reorganise" labels={labels} dangerous>
              <Select name="chain" options={locals.map(({ name }) => [name, chainTraits[name].displayName] as const)} />
              <TextField
                name="depth"
                inputMode="numeric"
                hint={`1 to ${deepest}. More than a chain’s confirmations undoes what was confirmed.`}
              />
            </PostForm>
          </section>
        </div>
      </>
    ) : (
      <Notice tone="neutral">{reason}</Notice>
    ),
    status
  )
}

const show: PortalHandler<Settings> = (viewer, { query }) =>
  Effect.map(Settings, ({ chains }) => {
    const reorganized = chainNames.find((name) => name === query.get("done"))
    const said = reorganized && `The last blocks of ${reorganized} were replaced.`
    return page(viewer, chains, formsOf(query.get("payment") ?? ""), said)
  })

/** Another token of the chain than the payment's, or its coin. */
const otherCurrency = ({ name, tokens }: LocalNetwork, { currency }: Payment): string =>
  [...tokens.keys()].find((symbol) => symbol !== currency) ?? nativeToken(name)

/** Another local chain that has the payment's currency. */
const otherChain = (chains: Chains, { chain, currency }: Payment): LocalNetwork | undefined =>
  localsOf(chains).find(
    ({ name, tokens }) => name !== chain && (tokens.has(currency) || currency === nativeToken(name))
  )

const wrong = (path: string, message: string) => invalid([{ path, message }])

const send = Effect.fnUntraced(
  function* (actor: Actor, payment: Payment, scenario: Exclude<Scenario, "nothing">) {
    const settings = yield* Settings
    const chain = localChainIn(settings.chains, payment.chain)
    if (chain === undefined) return yield* wrong("payment", `is on ${payment.chain}, which is no local chain here`)
    const isWrong = scenario === "wrong_token"
    const on = scenario === "wrong_chain" ? otherChain(settings.chains, payment) : chain
    if (on === undefined) return yield* wrong("scenario", `needs another local chain with ${payment.currency}`)
    const currency = isWrong ? otherCurrency(chain, payment) : payment.currency
    if (isWrong && currency === payment.currency) {
      return yield* wrong("scenario", `needs another token, and ${payment.chain} has none`)
    }
    const part = scenario === "half" || scenario === "more" ? scenario : undefined
    const act = { act: "sandbox pay", detail: { payment: payment.id, chain: on.name, currency, part } }
    yield* audited(actor, act, () =>
      payFor({
        ...{ part, chain: on, currency },
        payment: paymentObject(payment, settings),
        confirmations: chain.confirmations,
        networks: settings.chains
      })
    )
  },
  Effect.scoped,
  Effect.catchTags({
    NotPayable: ({ message }) => new ApiError({ code: "BAD_REQUEST", message }),
    LocalRpcError: ({ message }) => new ApiError({ code: "BAD_REQUEST", message })
  })
)

/** Seconds until it is due: the shortest where it is to end unpaid. */
const timeToPay = (scenario: Scenario): number => (scenario === "all" || scenario === "more" ? 3600 : 60)

const make = Effect.fnUntraced(function* (owner: Owner, actor: Actor, asset: string, scenario: Scenario) {
  const { chains } = yield* Settings
  const [currency, name = ""] = asset.split("-")
  const local = localChainIn(chains, name)
  if (local === undefined || !isCurrency(currency)) return yield* wrong("asset", "must be one of the list")
  return yield* createByHand(owner, actor, {
    merchantRef: `simulated ${randomToken()}`,
    amount: smallAmounts[currency],
    ...{ currency, chain: local.name satisfies ChainName },
    expiresIn: timeToPay(scenario)
  })
})

const Pay = Schema.Struct({
  scenario: must("be one of the list", Scenario),
  asset: Schema.optionalWith(Schema.String, { default: () => "" }),
  payment: maybe(Schema.String)
})

const pay = Effect.fnUntraced(function* (
  viewer: Viewer,
  actor: Actor,
  { asset, payment: id, scenario }: typeof Pay.Type
) {
  if (scenario === "nothing") {
    if (id !== undefined) return yield* wrong("scenario", "must send something to a payment that there is")
    return afterDone(viewer, `/payments/${(yield* make(viewer.owner, actor, asset, scenario)).id}`, "created")
  }
  const found = id === undefined ? undefined : yield* (yield* Payments).get(viewer.owner, id)
  if (id !== undefined && found === undefined) {
    return yield* wrong("payment", "must be the id of a payment of this account, in test mode")
  }
  const payment = found?.payment ?? (yield* make(viewer.owner, actor, asset, scenario))
  yield* send(actor, payment, scenario)
  return afterDone(viewer, `/payments/${payment.id}`, "simulated")
})

const Reorg = Schema.Struct({
  chain: must("be one of the list", Schema.String),
  depth: must(
    `be a whole number from 1 to ${deepest}`,
    Schema.NumberFromString.pipe(Schema.int(), Schema.between(1, deepest))
  )
})

const reorganize = Effect.fnUntraced(
  function* (viewer: Viewer, actor: Actor, { chain: name, depth }: typeof Reorg.Type) {
    const { chains } = yield* Settings
    const chain = localChainIn(chains, name)
    if (chain === undefined) return yield* wrong("chain", "must be one of the list")
    const act = { act: "sandbox reorg", detail: { chain: chain.name, depth } }
    yield* audited(actor, act, () => reorg(chain, depth))
    return pathOf(viewer, `${section}?done=${chain.name}`)
  },
  Effect.scoped,
  Effect.catchTag("LocalRpcError", ({ message }) => new ApiError({ code: "BAD_REQUEST", message }))
)

/** Carries out one of the forms, or shows the page again with what was typed. */
const posted =
  <A, I, R>(
    name: keyof Forms,
    schema: Schema.Schema<A, I>,
    run: (viewer: Viewer, actor: Actor, given: A) => Effect.Effect<string, ApiError | StoreUnavailable, R>
  ): PortalHandler<R | Settings> =>
  (viewer, { form }) =>
    Effect.flatMap(Settings, ({ chains }) => {
      const forms = formsOf("")
      // The page says why.
      if (whyNot(viewer, chains) !== undefined) return Effect.succeed(page(viewer, chains, forms, undefined, 403))
      return actOn(viewer, bodyOfForm(schema, givenOf(form), 0), (given, { actor }) => run(viewer, actor, given), {
        done: (path) => seeOther(path),
        refused: (problems, status) =>
          page(viewer, chains, { ...forms, [name]: { id: name, typed: form, problems } }, undefined, status)
      })
    })

export const simulateRoutes: ReadonlyArray<PortalRoute<Payments | Settings | Writer>> = [
  pageRoute(section, "admin", show),
  formRoute(`${section}/pay`, "admin", posted("pay", Pay, pay)),
  formRoute(`${section}/reorg`, "admin", posted("reorg", Reorg, reorganize))
]
