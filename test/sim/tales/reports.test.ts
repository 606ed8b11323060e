import { hdWallet } from "../../../src/Settings/hdWallet.ts"
import { testXpub } from "../../lib/settings.ts"
import { contractOf } from "../plans.ts"
import {
  ask,
  crash,
  end,
  fail,
  mine,
  pay,
  payEach,
  reorg,
  repeat,
  restart,
  type Story,
  see,
  seeCalls,
  seeExceptions,
  seeRows,
  send,
  telling,
  wait
} from "../told.ts"
import { transferLog } from "../transactions.ts"

// Ways in which public gateways and indexers have lost, invented or doubled money, each with the issue of its users.

const tell = telling()

// https://github.com/btcpayserver-tether/BTCPayServer.Plugins.USDt/pull/63
tell(
  "several transfers in one transaction are each counted: they are identified by log, not by transaction",
  { chains: ["polygon"] },
  ask("a"),
  ask("b"),
  payEach(["a", 400], ["b", 1_000], ["a", 600]),
  wait(15),
  end({ a: "confirmed 1000", b: "confirmed 1000" })
)

// https://github.com/btcpayserver/btcpayserver/issues/5286, https://github.com/LFDT-web3j/web3j/issues/703 and
// https://github.com/autonomoussoftware/metronome-wallet-desktop/issues/397
for (const failure of ["down", "hang"] as const) {
  tell(
    `a payment that was paid on time does not expire while no node answers, and is read once they are back: ${failure}`,
    { chains: ["base"] },
    ask("a"),
    wait(5),
    fail(0, failure, { seconds: 300 }),
    fail(1, failure, { seconds: 300 }),
    pay("a", 1_000),
    wait(240),
    see({ a: "pending" }),
    wait(120),
    see({ a: "confirmed 1000" })
  )
}

// https://github.com/ethereum/mist/issues/3387 and https://github.com/ethereum/meteor-dapp-wallet/issues/442
for (const chain of ["ethereum", "base"] as const) {
  tell(
    `an exchange's withdrawal through a contract is credited on ${chain}, whether its calldata names the address or not`,
    { chains: [chain] },
    ask("named", { currency: "ETH" }),
    pay("named", 1_000, { way: "insideNamed" }),
    wait(30),
    ask("hidden", { currency: "ETH" }),
    pay("hidden", 1_000, { way: "insideHidden" }),
    wait(45),
    end({ named: "confirmed 1000", hidden: "confirmed 1000" })
  )
}

// https://github.com/BoltzExchange/boltz-backend/issues/191
tell(
  "a restart continues at the checkpoint, however many blocks ago that is",
  { chains: ["arbitrum"] },
  ask("a"),
  wait(8),
  pay("a", 1_000),
  // 4,800 blocks.
  restart(7_200),
  wait(15),
  end({ a: "confirmed 1000" })
)

// https://github.com/ethereum/go-ethereum/issues/24078
for (const chain of ["ethereum", "base"] as const) {
  tell(
    `empty logs from a lagging node of ${chain} are corrected later`,
    { chains: [chain] },
    ask("a"),
    fail(0, "emptyLogs", { seconds: 10 }),
    pay("a", 1_000),
    wait(25),
    end({ a: "confirmed 1000" })
  )
}

// https://github.com/graphprotocol/graph-node/issues/3891
tell(
  "logs that a node left out under the right hash are found by the verification pass",
  { chains: ["optimism"] },
  ask("a"),
  fail(0, "partialLogs", { seconds: 10 }),
  ...repeat(10, pay("a", 100)),
  wait(10),
  see({ a: /^detecting [1-9]00$/ }),
  wait(15),
  end({ a: "confirmed 1000" })
)

// https://github.com/entrius/allways/issues/175
for (const when of ["before", "after"] as const) {
  tell(
    `the checkpoint and the receipts are stored together: a crash right ${when} the commit loses nothing`,
    { chains: ["base"] },
    ask("a"),
    wait(5),
    pay("a", 1_000),
    // Any of these commits may store the receipt: the ledger looks at each.
    ...repeat(6, crash(when), wait(5)),
    wait(15),
    end({ a: "confirmed 1000" })
  )
}

// https://github.com/btcpayserver/btcpayserver/issues/4146
tell(
  "money that is too much, too little or too late is flagged: overpaid, underpaid, late",
  { chains: ["base"] },
  ask("short"),
  ask("paid"),
  payEach(["short", 300], ["paid", 1_070]),
  wait(40),
  see({ short: "detecting 300", paid: "confirmed 1070" }),
  pay("paid", 50),
  wait(60),
  see({ short: "failed insufficient_amount 300", paid: "confirmed 1070" }),
  pay("short", 900),
  pay("paid", 80),
  wait(300),
  see({ short: "failed insufficient_amount 300", paid: "confirmed 1070" }),
  seeExceptions("overpaid 70 USDC", "overpaid 50 USDC", "underpaid 300 USDC", "late 900 USDC", "late 80 USDC")
)

// https://github.com/ponder-sh/ponder/issues/1657
tell(
  "a reorg below the final block does not stop the watcher: reading goes on, and an undone payment is reported",
  { chains: ["base"] },
  wait(60),
  ask("kept"),
  ask("undone"),
  // Without an open payment, finality is polled less often.
  ask("open", { expiresIn: 600 }),
  pay("kept", 1_000, { as: "first" }),
  pay("undone", 1_000, { as: "undone" }),
  wait(40),
  see({ kept: "confirmed 1000", undone: "confirmed 1000", open: "pending" }),
  // Five blocks below the one that is final by now.
  reorg({ from: "first", without: ["undone"] }),
  wait(120),
  end({ kept: "confirmed 1000", undone: "failed reorged", open: "pending" })
)

// https://github.com/web3/web3.js/issues/871 and https://github.com/ethereum/go-ethereum/issues/23845
tell(
  "no filter or subscription is used that a node could forget",
  { chains: ["ethereum", "base"] },
  ask("a", { on: "base" }),
  ask("b", { on: "ethereum", currency: "ETH" }),
  wait(120),
  seeCalls(/eth_getLogs/, { atLeast: 1 }),
  seeCalls(/filter|subscri/i, { atMost: 0 })
)

// https://github.com/ethereum/go-ethereum/issues/24078: also, a transaction that a block lists may have failed.
for (const chain of ["ethereum", "base"] as const) {
  tell(
    `the value of a failed transaction on ${chain} is not counted`,
    { chains: [chain] },
    ask("coin", { currency: "ETH" }),
    ask("token"),
    pay("coin", 1_000, { way: "failed" }),
    pay("token", 1_000, { way: "failed" }),
    wait(15),
    end({ coin: "pending", token: "pending" })
  )
}

// https://github.com/graphprotocol/graph-node/issues/5661
for (const [chain, interval] of [
  ["ethereum", 6],
  ["polygon", 3]
] as const) {
  tell(
    `logs of an orphaned block that a node still returns as removed do not count on ${chain}, and stop nothing`,
    { chains: [chain] },
    ask("a"),
    wait(2),
    pay("a", 1_000, { as: "orphaned" }),
    wait(interval),
    reorg({ from: "orphaned", without: ["orphaned"] }),
    fail(0, "removedLogs"),
    pay("a", 700),
    mine(10),
    wait(25),
    see({ a: "detecting 700" }),
    end({ a: "detecting 700" })
  )
}

const ways = [
  ["ethereum", "ETH"],
  ["base", "ETH"],
  ["base", "USDC"]
] as const

// https://github.com/btcpayserver/btcpayserver/issues/3817
for (const [chain, currency] of ways) {
  tell(
    `two payments in one block of ${chain} to one address are both counted in ${currency}`,
    { chains: [chain] },
    ask("a", { currency }),
    pay("a", 250),
    pay("a", 750),
    wait(15),
    end({ a: "confirmed 1000" })
  )
}

// https://github.com/btcpayserver/btcpayserver-doc/issues/960
tell(
  "two accounts on one extended public key never get the same address, across restarts too",
  { chains: ["base"] },
  ...[1, 2, 3, 4].flatMap((n) => [ask(`a${n}`), ask(`b${n}`, { account: "other" }), restart()]),
  seeRows("SELECT count(DISTINCT address) AS addresses FROM payments", { addresses: 8 }),
  pay("a1", 1_000),
  wait(15),
  end({ a1: "confirmed 1000", b1: "pending", a4: "pending", b4: "pending" })
)

const next = hdWallet(testXpub).address(0).toLowerCase()
const before = (currency: "ETH" | "USDC", value: bigint) => (story: Story) => {
  const usdc = contractOf(story.place().plan, "USDC")
  return currency === "ETH" ? { to: next, value } : { to: usdc, logs: [transferLog(usdc, next, value)] }
}

// https://github.com/spesmilo/electrum/issues/6609
for (const [chain, currency] of ways) {
  tell(
    `what an address had on ${chain} before it was handed out pays for nothing in ${currency}`,
    { chains: [chain] },
    wait(8),
    send(before(currency, 5_000n)),
    wait(70),
    ask("a", { currency }),
    seeRows("SELECT lower(address) AS address FROM payments", { address: next }),
    wait(20),
    see({ a: "pending" }),
    pay("a", 1_000),
    wait(15),
    end({ a: "confirmed 1000" })
  )
}
