/** The accounts of the installation, for operators: list with what each has stored, switch to one, make one. */
import { Effect, Either, Schema } from "effect"
import { audited } from "../../Auth/auditLog.ts"
import * as UsageRepo from "../../Auth/UsageRepo.ts"
import { Accounts } from "../../Auth.ts"
import { accountCreation, makeAccount } from "../../Control/accountHandlers.ts"
import type { Account } from "../../Domain/Account.ts"
import { modes } from "../../Domain/Chain.ts"
import { AccountId, newAccountId } from "../../Domain/Ids.ts"
import { seeOther } from "../../Pages/reply.tsx"
import type { Secrets } from "../../Secrets.ts"
import { keyInValue } from "../../Settings/keyMaterial.ts"
import { walletIdentity } from "../../Settings/walletKey.ts"
import { Settings } from "../../Settings.ts"
import { Reader, type Writer } from "../../Sql.ts"
import { blank, type FormState, PostForm, TextField } from "../components/Form.tsx"
import { Paging, Table } from "../components/Table.tsx"
import { Time } from "../components/values.tsx"
import { checked, ifGiven, readName, textOf } from "../fields.ts"
import { framedReply } from "../framedReply.tsx"
import { withQuery } from "../query.ts"
import { type PortalHandler, type PortalRoute, pathOf } from "../route.ts"
import type { Viewer } from "../Viewer.ts"

type Needs = Accounts | Reader | Secrets | Settings | Writer

const pageSize = 50

const walletsText = ({ ownWallets }: Account) =>
  ownWallets.length === 0 ? "shared" : `its own: ${ownWallets.join(", ")}`

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`

interface AccountTableProps {
  readonly accounts: ReadonlyArray<Account>
  /** Bytes by account. */
  readonly used: ReadonlyMap<string, number>
  readonly quotaBytes: number
}

const AccountTable = ({ accounts, quotaBytes, used }: AccountTableProps) => (
  <Table
    caption="Accounts, oldest first"
    rows={accounts}
    keyOf={({ id }) => id}
    empty="There is no account."
    columns={[
      { name: "Name", cell: ({ name }) => name },
      { name: "Identifier", cell: ({ id }) => <code>{id}</code> },
      {
        name: "Its pages",
        cell: ({ id, name }) => (
          <>
            {modes.map((mode) => (
              <span key={mode}>
                <a href={pathOf({ owner: { account: id, mode } })} aria-label={`${name}, ${mode}`}>
                  {mode}
                </a>{" "}
              </span>
            ))}
          </>
        )
      },
      { name: "Wallets", cell: walletsText },
      {
        name: "Stored",
        numeric: true,
        cell: ({ id }) => `${megabytes(used.get(id) ?? 0)} of ${megabytes(quotaBytes)}`
      },
      { name: "Made", cell: ({ createdAt }) => <Time at={createdAt} /> }
    ]}
  />
)

const labels = { name: "Name", live: "Its live wallet", test: "Its test wallet" }

const walletHint =
  "The extended public key (xpub…) of an account, m/44'/60'/n'. Empty: its payments go to the configuration's wallet."

const NewAccountForm = ({ of, viewer }: { readonly of: FormState; readonly viewer: Viewer }) => (
  <PostForm of={of} action={pathOf(viewer, "/accounts")} csrf={viewer.csrf} submit="Make the account" labels={labels}>
    <input type="hidden" name="id" value={of.typed.get("id") ?? ""} />
    <TextField of={of} name="name" label={labels.name} required />
    <TextField of={of} name="live" label={labels.live} hint={walletHint} />
    <TextField of={of} name="test" label={labels.test} hint={walletHint} />
  </PostForm>
)

const list: PortalHandler<Needs> = (viewer, { query }) =>
  Effect.gen(function* () {
    const accounts = yield* Accounts
    const { quotaBytes } = (yield* Settings).accounts
    const after = textOf(query, "after") || undefined
    const found = yield* accounts.list({ after, limit: pageSize + 1 })
    const usages = yield* UsageRepo.all(yield* Reader)
    const here = pathOf(viewer, "/accounts")
    const last = found.length > pageSize ? found[pageSize - 1]?.id : undefined
    return framedReply(
      viewer,
      { section: "/accounts", title: "Accounts" },
      <>
        <p>
          <a class="button primary" href={`${here}/new`}>
            Make an account
          </a>
        </p>
        <AccountTable
          accounts={found.slice(0, pageSize)}
          quotaBytes={quotaBytes}
          used={new Map(usages.map(({ account, reserved, stored }) => [account, stored + reserved]))}
        />
        <Paging first={after && here} next={last && withQuery(here, { after: last })} />
      </>
    )
  })

const newAccountPage = (viewer: Viewer, of: FormState, status?: number) =>
  framedReply(
    viewer,
    { section: "/accounts", title: "Make an account" },
    <NewAccountForm viewer={viewer} of={of} />,
    status
  )

/** The text of a wallet's field, or what is wrong with it, which never repeats it: it may be a private key. */
const readWallet = (text: string): Either.Either<string, string> => {
  const secret = keyInValue(text)
  if (secret !== undefined) {
    return Either.left(`was given what looks like ${secret}: tilld must never have one. Treat it as exposed`)
  }
  return walletIdentity(text) === undefined
    ? Either.left("must be the extended public key (xpub…) of an account, m/44'/60'/n'")
    : Either.right(text)
}

const withoutKeys = (form: URLSearchParams): URLSearchParams => {
  const typed = new URLSearchParams(form)
  for (const mode of modes) if (keyInValue(textOf(form, mode)) !== undefined) typed.delete(mode)
  return typed
}

const create: PortalHandler<Needs> = (viewer, { form }) =>
  Effect.gen(function* () {
    const refused = (problems: FormState["problems"]) =>
      newAccountPage(viewer, { id: "account", typed: withoutKeys(form), problems }, 422)
    const read = checked({
      id: Either.mapLeft(
        Schema.decodeUnknownEither(AccountId)(textOf(form, "id")),
        () => "This form is damaged: open it again."
      ),
      name: readName(textOf(form, "name")),
      live: ifGiven(readWallet)(textOf(form, "live")),
      test: ifGiven(readWallet)(textOf(form, "test"))
    })
    if (Either.isLeft(read)) return refused(read.left)
    const { id, live, name, test } = read.right
    const accounts = yield* Accounts
    const done = seeOther(pathOf({ owner: { account: id, mode: viewer.owner.mode } }))
    // The form was sent twice.
    if (yield* accounts.exists(id)) return done
    const wallets = { ...(live === undefined ? {} : { live }), ...(test === undefined ? {} : { test }) }
    return yield* audited(viewer.actor, accountCreation(id, name, wallets), () => makeAccount(id, name, wallets)).pipe(
      Effect.as(done),
      Effect.catchTag("WalletInOtherMode", ({ message }) => Effect.succeed(refused([{ path: "", message }])))
    )
  })

export const accountRoutes: ReadonlyArray<PortalRoute<Needs>> = [
  { method: "GET", path: "/accounts", role: "operator", handle: list },
  {
    method: "GET",
    path: "/accounts/new",
    role: "operator",
    handle: (viewer) => Effect.sync(() => newAccountPage(viewer, blank("account", { id: newAccountId() })))
  },
  { method: "POST", path: "/accounts", role: "operator", handle: create }
]
