/**
 * The accounts of the installation, for operators: list with what each has stored, switch to one, make one, change what one
 * may do.
 */
import { Effect } from "effect"
import * as AccountsRepo from "../../Auth/AccountsRepo.ts"
import { changeAccount, createAccount } from "../../Auth/accountOperations.ts"
import { accountLimits, configuredLimits } from "../../Auth/rateLimitWindows.ts"
import * as UsageRepo from "../../Auth/UsageRepo.ts"
import { Accounts } from "../../Auth.ts"
import type { Account } from "../../Domain/Account.ts"
import { modes } from "../../Domain/Chain.ts"
import { type AccountId, newAccountId } from "../../Domain/Ids.ts"
import { bytesText } from "../../lib/quantities.ts"
import { seeOther } from "../../Pages/reply.tsx"
import type { Secrets } from "../../Secrets.ts"
import { keyInValue } from "../../Settings/keyMaterial.ts"
import { Settings } from "../../Settings.ts"
import { Reader, type Writer } from "../../Sql.ts"
import { aboutOne, act, framedReply, pageById } from "../answers.tsx"
import { blank, type FormState, Hidden, PostForm, TextField } from "../components/Form.tsx"
import { Table, Time } from "../components/values.tsx"
import { afterDone, formRoute, type PortalHandler, type PortalRoute, pageRoute, pathOf, proofTo } from "../route.ts"
import { textOf, type Viewer } from "../Viewer.ts"

type Needs = Accounts | Reader | Secrets | Settings | Writer

const walletsText = ({ ownWallets }: Account) =>
  ownWallets.length === 0 ? "shared" : `its own: ${ownWallets.join(", ")}`

const storedText = ({ quota, stored }: Pick<UsageRepo.Usage, "quota" | "stored">): string =>
  `${bytesText(stored)}${quota === undefined ? ", no quota" : ` of ${bytesText(quota)}`}`

const labels = { name: "Name", liveXpub: "Its live wallet", testXpub: "Its test wallet" }

const walletHint =
  "The extended public key (xpub…) of an account, m/44'/60'/n'. Leave blank for the wallet of the configuration."

const list: PortalHandler<Needs> = Effect.fnUntraced(function* (viewer, { query }) {
  const accounts = yield* Accounts
  const settings = yield* Settings
  const stored = yield* UsageRepo.all(yield* Reader, settings.accounts.quotaBytes)
  const usages = new Map(stored.map((usage) => [usage.account, usage]))
  const page = yield* pageById(viewer, "/accounts", query, accounts.list)
  return framedReply(
    viewer,
    {
      ...{ section: "/accounts", title: "Accounts" },
      action: { href: pathOf(viewer, "/accounts/new"), text: "Create an account" }
    },
    <>
      <Table
        caption="Accounts, oldest first"
        rows={page.rows}
        keyOf={({ id }) => id}
        empty="There is no account."
        columns={[
          { name: "Name", cell: ({ name }) => name },
          { name: "Identifier", cell: ({ id }) => <code>{id}</code> },
          {
            name: "Open",
            cell: ({ id, name }) =>
              modes.map((mode) => (
                <span key={mode}>
                  <a href={pathOf({ owner: { account: id, mode } })} aria-label={`${name}, ${mode}`}>
                    {mode}
                  </a>{" "}
                </span>
              ))
          },
          { name: "Wallets", cell: walletsText },
          {
            name: "Stored",
            numeric: true,
            cell: ({ id }) => storedText(usages.get(id) ?? { stored: 0, quota: undefined })
          },
          {
            name: "Requests",
            numeric: true,
            cell: ({ id, name, terms }) => {
              const { perHour, perMinute } = accountLimits(terms, configuredLimits(settings))
              return (
                <>
                  {perMinute.toLocaleString("en-US")} a minute, {perHour.toLocaleString("en-US")} an hour{" "}
                  <a href={pathOf(viewer, `/accounts/${id}`)} aria-label={`Change what ${name} may do`}>
                    Change
                  </a>
                </>
              )
            }
          },
          { name: "Created", cell: ({ createdAt }) => <Time at={createdAt} /> }
        ]}
      />
      {page.paging}
    </>
  )
})

const termLabels = { quota: "It may store", perMinute: "Requests a minute", perHour: "Requests an hour" }

const quotaText = (quota: number | undefined): string => (quota === undefined ? "" : quota === 0 ? "none" : `${quota}`)

const termsOf = ({ terms: { perHour, perMinute, quotaBytes } }: Account): FormState =>
  blank("account-terms", {
    quota: quotaText(quotaBytes),
    perMinute: String(perMinute ?? ""),
    perHour: String(perHour ?? "")
  })

const keysHint = "Of all its keys together, in each mode. Leave blank for the default."

const termsPage = Effect.fnUntraced(function* (viewer: Viewer, account: Account, of: FormState) {
  const { quotaBytes } = (yield* Settings).accounts
  const usage = yield* UsageRepo.of(yield* Reader, account.id, quotaBytes)
  return framedReply(
    viewer,
    { section: "/accounts", title: account.name },
    <>
      <p>
        <code>{account.id}</code> has stored {storedText(usage)}.
      </p>
      <PostForm of={of} to={`/accounts/${account.id}`} submit="Change" labels={termLabels}>
        <TextField
          name="quota"
          hint="A size such as 500MB or 5GB, or none for no quota. Leave blank for the default."
        />
        <TextField name="perMinute" inputMode="numeric" hint={keysHint} />
        <TextField name="perHour" inputMode="numeric" hint={keysHint} />
      </PostForm>
    </>,
    of.problems.length > 0 ? 422 : 200
  )
})

const ofAccount = aboutOne("/accounts", "account", (_, id) =>
  Effect.flatMap(Reader, (reader) => AccountsRepo.byId(reader, id))
)

const showTerms = ofAccount((viewer, account) => termsPage(viewer, account, termsOf(account)))

const change = ofAccount((viewer, account, form) =>
  act(viewer, changeAccount, {
    ...{ form, fields: ["quota", "perMinute", "perHour"], given: { id: account.id } },
    done: () => seeOther(afterDone(viewer, "/accounts", "allowed")),
    refused: (problems) => termsPage(viewer, account, { id: "account-terms", typed: form, problems })
  })
)

const newAccountPage = (viewer: Viewer, of: FormState, status?: number) =>
  framedReply(
    viewer,
    { section: "/accounts", title: "Create an account" },
    <PostForm of={of} to="/accounts" submit="Create the account" labels={labels}>
      <Hidden name="id" />
      <TextField name="name" required />
      <TextField name="liveXpub" hint={walletHint} />
      <TextField name="testXpub" hint={walletHint} />
    </PostForm>,
    status
  )

const withoutKeys = (form: URLSearchParams): URLSearchParams => {
  const typed = new URLSearchParams(form)
  for (const field of ["liveXpub", "testXpub"]) if (keyInValue(textOf(form, field)) !== undefined) typed.delete(field)
  return typed
}

const create: PortalHandler<Needs> = (viewer, { form }) => {
  const sharedWallet = textOf(form, "liveXpub") + textOf(form, "testXpub") === ""
  const done = (id: AccountId) =>
    seeOther(afterDone({ owner: { account: id, mode: viewer.owner.mode } }, "", "account"))
  return act(viewer, createAccount, {
    ...{ form, fields: ["name", "liveXpub", "testXpub"], given: { id: textOf(form, "id"), sharedWallet } },
    done: (_, { id }) => done(id),
    refused: (problems) => newAccountPage(viewer, { id: "account", typed: withoutKeys(form), problems }, 422),
    // The form was sent twice.
    on: { AccountExists: (_, { id }) => done(id) }
  })
}

export const accountRoutes: ReadonlyArray<PortalRoute<Needs>> = [
  pageRoute("/accounts", "operator", list),
  pageRoute("/accounts/new", "operator", (viewer) =>
    Effect.sync(() => newAccountPage(viewer, blank("account", { id: newAccountId() })))
  ),
  formRoute("/accounts", "operator", create),
  pageRoute("/accounts/:id", "operator", showTerms),
  formRoute("/accounts/:id", "operator", change, proofTo("change the terms of an account", "always"))
]
