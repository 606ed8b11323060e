import { connect } from "node:net"
import { Clock, Effect, Fiber, Layer, Redacted } from "effect"
import { mnemonicToAccount } from "viem/accounts"
import { expect } from "vitest"
import { changeAccount, createAccount, listAccounts } from "../../src/Auth/accountOperations.ts"
import * as KeyOperations from "../../src/Auth/keyOperations.ts"
import { changeShop, showShop } from "../../src/Auth/shopOperations.ts"
import { Accounts, defaultAccount, Keys } from "../../src/Auth.ts"
import { showLedger } from "../../src/Books/ledgerOperation.ts"
import { WatchedAddresses } from "../../src/Chains/ledger/WatchedAddresses.ts"
import { Networks } from "../../src/Chains/providers/Networks.ts"
import { claimTransaction, listTokens, rescanBlocks } from "../../src/Chains/repairOperations.ts"
import { Rpc } from "../../src/Chains/rpc/Rpc.ts"
import { Chains } from "../../src/Chains.ts"
import { confirmWallets, readStatus, showAlertSecret, testAlert } from "../../src/Conditions/operations.ts"
import { conditionsLayer } from "../../src/Conditions.ts"
import * as Sockets from "../../src/Control/controlSockets.ts"
import { Invocation } from "../../src/Control/Invocation.ts"
import { allOperations } from "../../src/Control/operations.ts"
import { operationPath } from "../../src/Control/socketProtocol.ts"
import { ask, type ControlTarget } from "../../src/commands/askDaemon.ts"
import { EndpointId } from "../../src/Domain/Ids.ts"
import { Outbox } from "../../src/Events/Outbox.ts"
import { pluginEventsLayer } from "../../src/Greenfield/readInvoice.ts"
import { cancelOpenInvoice, listInvoices, showInvoice } from "../../src/Invoices/invoiceOperations.ts"
import { iso } from "../../src/lib/moment.ts"
import * as AuditRepo from "../../src/Operations/AuditRepo.ts"
import { listAudit } from "../../src/Operations/auditOperation.ts"
import type { Access, AnyOperation } from "../../src/Operations/operation.ts"
import { Addresses } from "../../src/Payments/addresses/Addresses.ts"
import {
  challengeWallet,
  checkProof,
  jumpAddresses,
  listReceived,
  readChain,
  recordCollected
} from "../../src/Payments/addresses/addressOperations.ts"
import { noteJump } from "../../src/Payments/addresses/numbering.ts"
import { challengeOf, proofMessage, proofOf } from "../../src/Payments/addresses/walletProof.ts"
import {
  acceptMoney,
  dropUnmade,
  listExceptions,
  listRefunds,
  refundMoney
} from "../../src/Payments/decisions/decisionOperations.ts"
import { accountRefunds, beginRefunds, owedRefunds } from "../../src/Payments/decisions/sweepRefunds.ts"
import { abandonPayments, cancelOpenPayment, listPayments, showPayment } from "../../src/Payments/paymentOperations.ts"
import { settlementLayer } from "../../src/Payments/Settlement.ts"
import { Secrets } from "../../src/Secrets.ts"
import { hdWallet } from "../../src/Settings/hdWallet.ts"
import { MasterKey, Settings, type SettingsShape } from "../../src/Settings.ts"
import { acquire } from "../../src/Sql/InstanceLock.ts"
import * as Sql from "../../src/Sql.ts"
import { Reader } from "../../src/Sql.ts"
import * as Deliveries from "../../src/Webhooks/deliveryOperations.ts"
import {
  changeEndpoint,
  deleteEndpoint,
  listEndpoints,
  registerEndpoint
} from "../../src/Webhooks/endpointOperations.ts"
import { DeliveryBell } from "../../src/Webhooks/queue/DeliveryBell.ts"
import { endpointContext, SigningKeys } from "../../src/Webhooks/SigningKeys.ts"
import { rotateSecret, showSecret } from "../../src/Webhooks/secretOperations.ts"
import { DeliveryClient } from "../../src/Webhooks/transport/DeliveryClient.ts"
import { Resolver, TargetGuard } from "../../src/Webhooks/transport/TargetGuard.ts"
import { Webhooks } from "../../src/Webhooks.ts"
import { waitingToCollect } from "../Conditions/surroundings.ts"
import { testXpub } from "../lib/settings.ts"
import { execute, type Yielded } from "../lib/store.ts"

const account = defaultAccount
const mode = "test"
const payment = (n: number) => `pay_${String(n).repeat(22)}`
const endpoint = EndpointId.make(`wh_${"e".repeat(22)}`)
const delivery = `dlv_${"d".repeat(22)}`
const hash = `0x${"1".repeat(64)}`

const insertPayment = (n: number, chain: string, ended: number | "NULL") => `
  INSERT INTO payments (id, checkout_token, account_id, mode, merchant_ref, amount, currency, chain, address, wallet,
    wallet_index, status, created_at, expires_at, created_head, metadata, ended_at)
  VALUES ('${payment(n)}', '${n}', 'default', 'test', 'order ${n}', '1000', 'ETH', '${chain}',
    '0x000000000000000000000000000000000000000${n}', 'w', ${n}, '${ended === "NULL" ? "pending" : "expired"}', 0, 1000, 100,
    '{}', ${ended})`

/** A payment that expired and was paid late, with its exception. */
const paidLate = (n: number) => [
  insertPayment(n, "base", 2000),
  `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency, amount,
     payment_id, canonical, corroborated, seen_at)
   VALUES ('base', 'test', '0xb', '0x000000000000000000000000000000000000000${n}', 'tx:0', 101, 9000, '0xlate${n}', 'ETH',
     '1000', '${payment(n)}', 1, 1, 3000)`,
  `INSERT INTO exceptions (id, address, key, payment_id, kind, chain, mode, tx_hash, currency, amount, opened_at)
   VALUES ('exc_${n}', '0x000000000000000000000000000000000000000${n}', 'late:base:0xlate${n}:ETH', '${payment(n)}', 'late',
     'base', 'test', '0xlate${n}', 'ETH', '1000', 3000)`
]

const noted = `ref_${"1".repeat(22)}`
/** A refund of it that was noted without its transaction. */
const refund = [
  `INSERT INTO refunds (id, payment_id, account_id, mode, address, chain, currency, amount, status, created_at, changed_at,
     block_time)
   VALUES ('${noted}', '${payment(1)}', 'default', 'test', '0x0000000000000000000000000000000000000001', 'base', 'ETH', '5',
     'noted', 1, 1, 0)`,
  `INSERT INTO refund_parts VALUES ('${noted}', 0, NULL, '0xother', NULL, '5', 0)`
]

/** That the seed of the test wallet is held: it is the phrase that every development tool publishes. */
const proof = await (async () => {
  const challenge = challengeOf(hdWallet(testXpub), iso(Effect.runSync(Clock.currentTimeMillis)).slice(0, 10)) ?? ""
  const phrase = `${"test ".repeat(11)}junk`
  const holder = mnemonicToAccount(phrase, { accountIndex: 1, addressIndex: 0 })
  return proofOf(challenge, await holder.signMessage({ message: proofMessage(challenge) }))
})()

const invoice = `inv_${"2".repeat(22)}`

const rows = [
  "INSERT INTO wallets (fingerprint, next_index) VALUES ('w', 10)",
  // As deep as the chain asks for.
  `INSERT INTO scans (chain, mode, start_number, head_number, head_hash, head_time, verified_number)
   VALUES ('base', 'test', 100, 200, '0xc8', 9000, 200)`,
  ...paidLate(1),
  ...paidLate(2),
  ...refund,
  insertPayment(3, "polygon", "NULL"),
  insertPayment(4, "base", "NULL"),
  `INSERT INTO invoices (id, checkout_token, account_id, mode, amount, currency, choices, status, created_at, expires_at, metadata)
   VALUES ('${invoice}', 't', 'default', 'test', '25', 'EUR', 'USDC-base', 'open', 0, 9000000, '{}')`,
  `INSERT INTO api_keys (id, account_id, mode, name, hash, last_four, permissions, created_at)
   VALUES ('key_1', 'default', 'test', 'shop', randomblob(1), 'last', 'payments:read', 0)`,
  `INSERT INTO events (id, account_id, mode, payment_id, kind, body, created_at)
   VALUES ('evt_${"d".repeat(22)}', 'default', 'test', '${payment(1)}', 'payment.created', '{}', 5)`,
  `INSERT INTO deliveries (sequence, id, event_id, payment_id, account_id, mode, endpoint_id, own_url, target, url, status,
     attempts, created_at, done_at)
   VALUES (1, '${delivery}', 'evt_${"d".repeat(22)}', '${payment(1)}', 'default', 'test', '${endpoint}', 0, 't', 'https://shop.example/',
     'failed', 6, 5, 9)`
]

/** Stores one of each kind of object that can be administered. */
const furnish = Effect.gen(function* () {
  const { seal } = yield* Secrets
  const secret = seal("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", endpointContext(endpoint))
  yield* execute(
    `INSERT INTO endpoints (id, account_id, mode, url, events, secret, created_at)
     VALUES (?, 'default', 'test', 'https://shop.example/', '["payment.created"]', ?, 0)`,
    [endpoint, secret]
  )
  for (const row of rows) yield* execute(row)
})

export interface Sample {
  readonly operation: AnyOperation
  readonly input: object
  readonly act?: string
  readonly detail?: Readonly<Record<string, unknown>>
}

/** The name of what a sample asks for. */
export const nameOf = ({ operation }: Sample): string => operation.name

/** Asks for a sample. */
export const askSample = (place: ControlTarget, { input, operation }: Sample) => ask(place, operation, input)

/** One valid request of every kind, with its expected audit row. */
export const samples: ReadonlyArray<Sample> = [
  { operation: KeyOperations.listKeys, input: {} },
  { operation: listAccounts, input: {} },
  { operation: listTokens, input: {} },
  { operation: listPayments, input: { mode, search: "order 3" } },
  { operation: showPayment, input: { of: payment(1) } },
  { operation: listExceptions, input: {} },
  { operation: Deliveries.listDeliveries, input: { mode, status: "failed", until: "1d" } },
  { operation: Deliveries.showDelivery, input: { id: delivery } },
  { operation: listEndpoints, input: { account, mode } },
  { operation: showShop, input: { account } },
  { operation: readStatus, input: {} },
  { operation: listAudit, input: { limit: 10 } },
  { operation: showAlertSecret, input: {}, act: "alerts secret", detail: {} },
  { operation: testAlert, input: {}, act: "alerts test", detail: {} },
  { operation: confirmWallets, input: {}, act: "config confirm", detail: { confirmed: [] } },
  {
    operation: KeyOperations.createKey,
    input: { account, mode, name: "till", permissions: ["payments:read"], ips: ["192.0.2.1"], perMinute: 5 },
    act: "keys create",
    detail: {
      key: /^key_/,
      account,
      mode,
      name: "till",
      permissions: ["payments:read"],
      ips: ["192.0.2.1/32"],
      perMinute: 5
    }
  },
  {
    operation: KeyOperations.changeKey,
    input: { id: "key_1", ips: ["192.0.2.0/24"], perMinute: 600, perHour: null },
    act: "keys change",
    detail: { key: "key_1", ips: ["192.0.2.0/24"], perMinute: 600, perHour: "default" }
  },
  {
    operation: KeyOperations.rollKey,
    input: { id: "key_1", overlap: "24h" },
    act: "keys roll",
    detail: { key: "key_1", to: /^key_/, overlap: "1d" }
  },
  { operation: KeyOperations.revokeKey, input: { id: "key_1" }, act: "keys revoke", detail: { key: "key_1" } },
  {
    operation: createAccount,
    input: { name: "Shop", testXpub },
    act: "accounts create",
    detail: { account: /^acct_/, name: "Shop", ownWallets: ["test"] }
  },
  {
    operation: changeAccount,
    input: { id: account, quota: "none", perMinute: 500, perHour: null },
    act: "accounts change",
    detail: { account, quotaBytes: "none", perMinute: 500, perHour: "default" }
  },
  {
    operation: changeShop,
    input: { account, name: "Corner shop", accent: null, frameOrigins: ["https://shop.example"] },
    act: "accounts shop",
    detail: { account, name: "Corner shop", frameOrigins: ["https://shop.example"] }
  },
  { operation: showSecret, input: { account, mode }, act: "webhooks secret", detail: { account, mode } },
  {
    operation: rotateSecret,
    input: { account, mode, overlap: "24h" },
    act: "webhooks secret --rotate",
    detail: { account, mode, overlap: "1d" }
  },
  {
    operation: KeyOperations.makeLoginLink,
    input: { name: "Ada", role: "viewer", account },
    act: "login",
    detail: { name: "Ada", role: "viewer", account, person: /^per_/ }
  },
  { operation: acceptMoney, input: { id: payment(1) }, act: "payments accept", detail: { id: payment(1) } },
  {
    operation: refundMoney,
    input: { id: payment(2), amount: "400", txHash: hash, note: "a part" },
    act: "payments refunded",
    detail: { id: payment(2), amount: "400", tx: hash, note: "a part", refund: expect.stringMatching(/^ref_/) }
  },
  { operation: listRefunds, input: { account: "default", mode: "test" } },
  { operation: dropUnmade, input: { id: noted }, act: "refunds drop", detail: { id: noted } },
  { operation: owedRefunds, input: { of: ["exc_2"] } },
  {
    operation: beginRefunds,
    input: {
      digest: hash,
      refunds: [
        {
          refund: `ref_${"2".repeat(22)}`,
          exception: "exc_2",
          amount: "1",
          to: "0x8C8d35429F74ec245F8Ef2f4Fd1e551cFF97d650",
          place: 0,
          way: "token"
        }
      ]
    },
    act: "sweep begin",
    detail: { digest: hash, wasSent: false, refunds: `ref_${"2".repeat(22)}` }
  },
  {
    operation: accountRefunds,
    input: { digest: hash, sent: [], unsent: [] },
    act: "sweep account",
    detail: { digest: hash, sent: 0, unsent: 0 }
  },
  { operation: listInvoices, input: { account, mode } },
  { operation: showInvoice, input: { id: invoice } },
  { operation: cancelOpenInvoice, input: { id: invoice }, act: "invoices cancel", detail: { id: invoice } },
  { operation: cancelOpenPayment, input: { id: payment(4) }, act: "payments cancel", detail: { id: payment(4) } },
  {
    operation: abandonPayments,
    input: { chain: "polygon", mode },
    act: "payments abandon",
    detail: { chain: "polygon", mode }
  },
  { operation: jumpAddresses, input: { by: 5 }, act: "addresses jump", detail: { by: 5 } },
  { operation: showLedger, input: { mode, account } },
  { operation: listReceived, input: { chain: "polygon", mode } },
  { operation: readChain, input: { chain: "polygon", mode } },
  { operation: challengeWallet, input: { mode, account } },
  { operation: checkProof, input: { proof }, act: "wallet check", detail: { proof: /^tilld-1-/ } },
  {
    operation: recordCollected,
    input: {
      ...{ chain: "polygon", mode, digest: `0x${"d1".repeat(32)}` },
      transfers: [
        {
          ...{ hash: `0x${"c0".repeat(32)}`, place: 0, address: `0x${"a1".repeat(20)}`, to: `0x${"a2".repeat(20)}` },
          ...{ currency: "USDC", amount: "1", at: 1, nonce: 0 }
        }
      ],
      gas: [
        { hash: `0x${"c0".repeat(32)}`, payer: `0x${"a1".repeat(20)}`, to: `0x${"a2".repeat(20)}`, wei: "2", at: 1 }
      ]
    },
    act: "sweep record",
    detail: { chain: "polygon", mode, digest: `0x${"d1".repeat(32)}`, transfers: 1, transactions: 1 }
  },
  { operation: Deliveries.redeliverOne, input: { id: delivery }, act: "webhooks redeliver", detail: { delivery } },
  {
    operation: Deliveries.redeliverRange,
    input: { mode, status: "failed", since: "1970-01-01", until: "1970-01-02" },
    act: "webhooks redeliver range",
    detail: { account, mode, status: "failed", since: "1970-01-01T00:00:00.000Z", until: "1970-01-02T00:00:00.000Z" }
  },
  { operation: Deliveries.sendTestDelivery, input: { endpoint }, act: "webhooks test", detail: { endpoint } },
  {
    operation: registerEndpoint,
    input: { mode, url: "https://shop.example.com/second/4711", events: ["payment.failed"] },
    act: "webhooks register",
    detail: { endpoint: /^wh_/, account, mode, host: "shop.example.com", events: ["payment.failed"] }
  },
  {
    operation: changeEndpoint,
    input: {
      id: endpoint,
      url: "https://shop.example.com/moved/4711",
      secret: "whsec_fedcba9876543210"
    },
    act: "webhooks change",
    detail: { endpoint, host: "shop.example.com", secret: "replaced" }
  },
  { operation: deleteEndpoint, input: { id: endpoint }, act: "webhooks delete", detail: { endpoint } },
  {
    operation: rescanBlocks,
    input: { chain: "base", mode, from: 7, to: 9 },
    act: "rescan",
    detail: { chain: "base", mode, from: 7, to: 9 }
  },
  {
    operation: claimTransaction,
    input: { chain: "base", mode, txHash: hash },
    act: "claim",
    detail: { chain: "base", mode, txHash: hash }
  }
] as const

/** The access of every kind of request, by tag. */
export const accesses: ReadonlyMap<string, Access> = new Map(allOperations.map(({ access, name }) => [name, access]))

/** Chains without providers: rescan and claim find nothing. */
const still = Layer.succeed(Chains, {
  run: Effect.never,
  health: Effect.succeed([]),
  gas: () => Effect.succeed(undefined),
  behind: () => 0,
  exclusively: () => () =>
    Effect.succeed({
      through: 9,
      to: 9,
      receipts: 0,
      added: 0,
      blockNumber: 7,
      blockHash: "0xb",
      credits: []
    } as never),
  wake: () => undefined,
  viewed: () => undefined,
  refresh: () => Effect.void,
  look: () => Effect.void
})

/** No receiver is called: every delivery gets a 204. */
const answered = Layer.succeed(DeliveryClient, { post: () => Effect.as(Clock.currentTimeMillis, { status: 204 }) })

/** A jump is noted, and no address is derived. */
const jumping = Effect.map(Effect.context<Sql.Reader | Sql.Writer>(), (store) =>
  Layer.mock(Addresses, { jump: (by) => Effect.provide(noteJump(by), store) })
)

/** The services of the daemon's end of the sockets, without providers and receivers. */
export const services = (settings: SettingsShape) =>
  Layer.mergeAll(conditionsLayer, answered, Webhooks.layer, Networks.layer).pipe(
    Layer.provideMerge(still),
    Layer.provide(waitingToCollect(0n)),
    Layer.provide(TargetGuard.layer),
    Layer.provide(Resolver.layer),
    Layer.provideMerge(Layer.mergeAll(settlementLayer, WatchedAddresses.layer, Rpc.layer, SigningKeys.layer)),
    Layer.provideMerge(Layer.provideMerge(Outbox.layer, DeliveryBell.layer)),
    Layer.provide(pluginEventsLayer),
    Layer.provideMerge(Layer.mergeAll(Accounts.layer, Keys.layer, Secrets.layer, Layer.unwrapEffect(jumping))),
    Layer.provide(Layer.succeed(MasterKey, Redacted.make(new Uint8Array(32).fill(7)))),
    Layer.provideMerge(Sql.layer(settings.database.path)),
    Layer.provideMerge(Layer.succeed(Settings, settings))
  )

const masterKey = Buffer.alloc(32, 7).toString("base64")

export const invocation = Layer.succeed(Invocation, { env: { TILLD_MASTER_KEY: masterKey }, user: "alice as root" })

/** Runs a test with the daemon's end of the sockets in this process, which holds the lock. */
export const withDaemon = <A, E, R>(
  settings: SettingsShape,
  test: (worker: Fiber.RuntimeFiber<void>) => Effect.Effect<A, E, R>
) =>
  Effect.gen(function* () {
    yield* acquire(settings.database.path, "serve")
    return yield* Effect.gen(function* () {
      return yield* test(yield* Effect.fork(yield* Sockets.startSockets(settings)))
    }).pipe(Effect.scoped, Effect.provide(services(settings)))
  }).pipe(Effect.scoped, Effect.provide(invocation))

/** The same, with one of each kind of object in the store. */
export const besideDaemon = <Eff extends Yielded, A>(settings: SettingsShape, test: () => Generator<Eff, A, never>) =>
  withDaemon(settings, (worker) =>
    Effect.gen(function* () {
      yield* furnish
      const result = yield* Effect.gen(test)
      // The worker ends only with a defect of a request.
      if (worker.unsafePoll() !== null) yield* Fiber.join(worker)
      return result
    })
  )

/** A request for an operation, as its client would send it. */
export const requestOf = (name: string, input: unknown, method = "POST"): string => {
  const body = typeof input === "string" ? input : JSON.stringify(input)
  const headers = ["Host: tilld", "Content-Type: application/json", `Content-Length: ${Buffer.byteLength(body)}`]
  return [`${method} ${operationPath({ name })} HTTP/1.1`, ...headers, "", body].join("\r\n")
}

/** Sends raw bytes, and returns all received bytes until the daemon closes the connection. */
export const exchange = (socketPath: string, bytes: string | Buffer) =>
  Effect.async<string>((resume) => {
    let answer = ""
    const socket = connect(socketPath)
    socket.setEncoding("utf8")
    socket.on("data", (text: string) => {
      answer += text
    })
    socket.on("error", () => undefined)
    socket.on("close", () => resume(Effect.succeed(answer)))
    socket.write(bytes)
    return Effect.sync(() => socket.destroy())
  })

export const logged = Effect.flatMap(Reader, (reader) =>
  AuditRepo.list(reader, { since: 0, before: undefined, limit: 1000 })
)
