/**
 * What a provider can lie about, who must agree, and what happens without agreement.
 *
 * A provider is somebody else's computer. It can invent a transfer or leave one out; date a block wrongly, or show a
 * head that does not exist; serve another branch, or another chain; say that a transaction is in no block, that an
 * address is empty, that gas is dear or coins are cheap. It can do so once, at the worst moment, and be right
 * afterwards. It can also merely be behind, have pruned what it is asked for, or sit behind a load balancer whose nodes
 * differ: most wrong responses are not lies.
 *
 * So one provider of several decides nothing. Each question below is put to more than one, and the answers of a round
 * are counted in one place (`Ballot.ts`): yes with a value, no, no because the provider has another block there, or
 * unable to say. Two that say the same, the quorum, decide. Earlier responses are not votes: nothing is added up across
 * rounds, since a reorg may lie between them. What two say replaces what one had said and what was stored of it, and a
 * provider that two contradict does not serve for an hour. A fact that moves money or time (a block time, an age, a
 * sender) is only taken from evidence that counts.
 *
 * Where two differ and no third one answers, nothing is decided: the payment waits, /readyz says why, and the remedy is
 * a third provider. Where the others are silent for `payments.sole_provider_patience`, the serving one decides alone,
 * as the only provider of a chain does, but never against what another one has denied; /readyz, metrics and an alert
 * say since when. A lagging node and a stalled one are waited for first: the higher one may be the liar.
 *
 * The serving provider may still delay: blocks are read from it alone, and what it leaves out is found by another one when
 * the payment ends, when the blocks are deep, or at the next sweep.
 *
 * The table is the list of these questions. docs/providers.md prints it, and a test fails where source calls a provider
 * without a row here.
 */

/** One question that is put to the providers of a chain. The texts complete the columns of the table in the docs. */
export interface Question {
  readonly asks: string
  /** Who must agree before the answer decides anything. */
  readonly agree: string
  /** What counts as an answer. */
  readonly answers: string
  /** What happens where two providers differ. */
  readonly differ: string
  /** What happens while no other provider answers. */
  readonly alone: string
  /** The calls that ask it, by source file. */
  readonly asked: Readonly<Record<string, ReadonlyArray<string>>>
}

export const questions: ReadonlyArray<Question> = [
  {
    asks: "which transfers are in new blocks",
    agree: "no one: what the serving one reports shows as `detecting`, and counts by the next rows",
    answers: "logs and transactions of blocks that follow each other by their parents' hashes",
    differ: "what it leaves out is found at the payment's end, in deep blocks or by a sweep",
    alone: "the same",
    asked: {
      "Chains/scan/readRange.ts": ["getBlockLogs", "getFullBlock", "getHeader", "getLogs", "getTransactionReceipt"],
      "Chains/scan/oversizedBlock.ts": ["getBlockReceipts", "getBlockTransactions", "getLoggedReceipt"],
      "Chains/watcher/tick.ts": ["getHeader"],
      "Chains/watcher/maintenance.ts": ["getHeader"]
    }
  },
  {
    asks: "whether a receipt is in its block",
    agree: "two",
    answers:
      "yes with block time and sender, deep enough below its own head, by the transaction's receipt or, without one, the block's logs; no; no, another block is there; unable while its head is too low",
    differ: "two that deny refute it, and its reporter is contradicted; of two providers, it waits",
    alone: "it waits for the patience, then counts unless another one has denied it",
    asked: {
      "Chains/corroboration/receiptEvidence.ts": [
        "findBlockTransactions",
        "findHeader",
        "findRawTransaction",
        "getBlockLogs",
        "getHead",
        "receiptReader"
      ]
    }
  },
  {
    asks: "what moved inside a contract",
    agree: "two",
    answers: "a trace, or the balances after the block and the one before; unable with neither",
    differ: "as a receipt",
    alone: "as a receipt; after 10 minutes without one that is able, an exception `unattributed`",
    asked: {
      "Chains/corroboration/corroborateInternal.ts": ["getFullBlock", "getTransactionOutcome", "traceTransaction"],
      "Chains/balances/blockIncome.ts": [
        "getFullBlock",
        "getHeader",
        "getTransactionOutcome",
        "simulateBlock",
        "traceTransaction"
      ]
    }
  },
  {
    asks: "what an address holds, and how often it has sent",
    agree:
      "no one to look further; two for money that no transaction explains, and for a balance from before the payment",
    answers: "the state after a block, by its hash, read in two ways; unable where it is pruned",
    differ: "money that others' states deny is not stored, or removed again",
    alone: "it is stored, keeps the payment open, and confirms nothing",
    asked: {
      "Chains/balances/reconcile.ts": ["getHeader", "readPackedBalances"],
      "Chains/balances/historicalStates.ts": ["balanceAt", "getHeader", "nonceAt"],
      "Chains/corroboration/corroborateBalances.ts": ["findHeader", "readPackedBalances"]
    }
  },
  {
    asks: "that no money came, before a payment ends",
    agree: "two, whose own heads confirm the end",
    answers: "its logs and balances up to the end of the payment's time, on the branch that was read",
    differ: "what either finds keeps the payment open until it is corroborated or refuted",
    alone: "the payment waits for the patience, then ends by what the serving one has",
    asked: {
      "Chains/corroboration/searchProvider.ts": ["getHeader"],
      "Chains/corroboration/secondEvidence.ts": ["findHeader"]
    }
  },
  {
    asks: "the time of the block by which payments end",
    agree: "two",
    answers: "the header at that height",
    differ:
      "the time of two replaces the stored one, and a provider with another is contradicted; a branch that two others do not have is left; of two, payments wait",
    alone: "the stored time counts once the serving one decides alone",
    asked: { "Chains/corroboration/endingSearch.ts": ["findHeader"] }
  },
  {
    asks: "which transfers are in blocks four times as deep as the confirmations",
    agree:
      "all that answer read them again; a transfer that one adds counts as a receipt does, and takes two where the block was read with another hash",
    answers: "the logs of a range on the branch that was read",
    differ: "a third one says who has the wrong block; without one the pass waits, and /readyz names both",
    alone: "the serving one reads alone after the patience, and again with the next that is back",
    asked: {
      "Chains/corroboration/verificationPass.ts": ["getHeader"],
      "Chains/corroboration/blockDispute.ts": ["findHeader"]
    }
  },
  {
    asks: "how far the chain is",
    agree: "depth counts by the second highest head; a head 1,000 blocks up needs another one near it",
    answers: "the newest header; a head that stands still while others' move counts as silence",
    differ:
      "one that lags, stands still or has old times goes into cooldown; a higher one that two others stay below for two minutes is given up",
    alone: "its own head counts once it decides alone",
    asked: {
      "Chains/watcher/tick.ts": ["findHeader", "getHead"],
      "Chains/providers/Heads.ts": ["findHeader", "getHead"]
    }
  },
  {
    asks: "how far a head is ahead of this machine's clock",
    agree: "two, from 5 seconds on: it gives payments that much more time",
    answers: "the time of the newest header",
    differ: "the lower lead counts; beyond `payments.clock_tolerance` the higher one is not read",
    alone: "the clock stands for the patience; far ahead, another chain's head may show the same",
    asked: { "Chains/providers/Heads.ts": ["getHead"] }
  },
  {
    asks: "whether a block was replaced",
    agree: "one, while it lacks its confirmations; two if it has them or is finalized",
    answers: "the header at a stored block's height",
    differ: "the old branch stands",
    alone: "a deep one waits for the patience; nothing is undone before a second one has been searched",
    asked: { "Chains/scan/commonAncestor.ts": ["findHeader", "getHeader"] }
  },
  {
    asks: "which block is `safe` or `finalized`",
    agree: "two have reached it",
    answers: "the tagged header; a node that does not know the tag says nothing",
    differ: "the lower block counts",
    alone: "it counts after the patience",
    asked: { "Chains/watcher/finalityTags.ts": ["getTagged"] }
  },
  {
    asks: "which chain it is",
    agree: "all that have its first block; each is checked before it is used",
    answers: "chain id and first block, or a later known one",
    differ: "nothing is read until they agree; later, one of another chain is not used",
    alone: "silent ones have a minute; on a chain of which no block is known, so has one of another chain",
    asked: {
      "Chains/providers/chainIdentity.ts": ["findHeader", "getChainId"],
      "Chains/watcher/tick.ts": ["getChainId", "getHeader"]
    }
  },
  {
    asks: "whether a provider that does not serve would be fit to",
    agree: "nobody: it is said by health, and decides nothing",
    answers: "chain id, and a head at most 5 blocks or 10 seconds behind the serving one's",
    differ: "it is unhealthy until the next look",
    alone: "no other is looked at",
    asked: { "Chains/providers/Providers.ts": ["getChainId", "getHead"] }
  },
  {
    asks: "what gas costs, for a quote",
    agree: "the middle one of all that answer, of two the lower; above a chain's bound no quote is given",
    answers: "a price, with the data fee on Ethereum where there is one",
    differ: "the middle counts",
    alone: "its price counts, up to the bound",
    asked: { "Chains/providers/gas.ts": ["getGasPrice", "getL1Fee"] }
  },
  {
    asks: "what a price feed says",
    agree: "the middle one of all that answer; two within 0.5 %",
    answers:
      "a round that is no older than its heartbeat allows, of a feed whose name and decimals are right; or that there is none",
    differ: "of two, or where as many say that there is none, the feed gives no price",
    alone: "its price counts, and is compared with the other sources",
    asked: { "Quotes/sources/chainlink.ts": ["readContractViews"] }
  },
  {
    asks: "whether an address was used before it is handed out",
    agree: "one is enough to take another address; two to skip it for good",
    answers: "coins, tokens, or sent transactions",
    differ: "the address stays in the pool, and is not handed out while one says so",
    alone: "as if it differed; money from before its payment never counts, whatever is said",
    asked: {
      "Chains/balances/AddressHistory.ts": ["getHead", "getTransactionCount", "readPackedBalances", "readTokenBalances"]
    }
  },
  {
    asks: "whether a transaction that somebody names is in a block, and for a refund what it transfers",
    agree: "two",
    answers: "yes with block and outcome, as deep as the second of two heads says; no",
    differ: "the decision is refused, and a refund stays as it is: no two say the same",
    alone: "refused for the patience, then the serving one's word",
    asked: { "Chains/providers/minedTransaction.ts": ["getHead", "getHeader", "getMinedValue", "receiptReader"] }
  },
  {
    asks: "what `tilld rescan`, `tilld claim` and the search of skipped addresses find",
    agree: "no one to store it; it counts as a receipt does",
    answers: "transactions and logs on the branch that was read, within what balances allow",
    differ: "as a receipt",
    alone: "as a receipt",
    asked: {
      "Chains/repair/claim.ts": [
        "getBlockLogs",
        "getFullBlock",
        "getHeader",
        "getTransaction",
        "receiptReader",
        "traceTransaction"
      ],
      "Chains/repair/rescan.ts": ["getHeader"],
      "Chains/repair/skippedTokens.ts": ["getLogs"]
    }
  },
  {
    asks: "whether money is at an address of ours and in no row",
    agree: "two; of what they show the lower counts",
    answers: "balances after a block with its confirmations, by its hash, and again once later blocks are deep",
    differ: "what one shows alone is not told; each day another one reads first",
    alone: "nothing is told",
    asked: {
      "Chains/balances/audit.ts": ["getHeader"],
      "Chains/balances/holdings.ts": ["readPackedBalances", "readTokenBalances"]
    }
  },
  {
    asks: "what there is to collect, what moving it costs, and whether a token would move",
    agree:
      "no one, but for a plan: it is refused where two differ on a nonce or are apart in the head, and the lower fee counts; two for the money of a refund",
    answers: "balances and simulations at the head, which the chain itself decides on again once it is sent",
    differ: "the plan is refused, or moves less than there is",
    alone: "as one provider says",
    asked: {
      "Collect/fees.ts": ["getGasPrice", "getPriorityFee"],
      "Collect/candidates.ts": ["getL1Fee", "getPricedHead"],
      "Collect/makePlan.ts": ["getHead", "getL1Fee", "getPendingCount", "getTransactionCount", "readContractViews"],
      "Collect/simulation.ts": ["estimateGas", "readContractViews", "simulateAttempts", "tryCall"]
    }
  },
  {
    asks: "whether what was collected has moved, to the unit",
    agree: "two, where two are configured; to give a transaction up, all that can be asked",
    answers: "balances before, receipts with their confirmations, used authorizations, balances afterwards",
    differ:
      "before it begins, nothing is sent, and of balances the lower counts; later, a difference, which is not noted",
    alone: "nothing begins; once begun, it waits for the second one, for `payments.sole_provider_patience` at most",
    asked: {
      "Chains/providers/chainAccess.ts": ["getPricedHead"],
      "Collect/broadcast.ts": ["getHead", "getTransactionCount", "nonceAt", "sendRawTransaction"],
      "Collect/reconcile.ts": ["getHeader", "getLogs", "getPricedHead", "receiptReader"],
      "Collect/standing.ts": ["getPendingCount", "getPricedHead", "readContractViews", "receiptReader"]
    }
  },
  {
    asks: "what `tilld doctor` shows of each provider",
    agree: "no one: it decides nothing",
    answers: "what the provider can do, and how far back",
    differ: "it is a finding",
    alone: "it is a finding",
    asked: {
      "Doctor/chains.ts": [
        "balancesByOverride",
        "ethCall",
        "getCode",
        "getFullBlock",
        "getHead",
        "getHeader",
        "getLogs"
      ],
      "Doctor/providers.ts": [
        "balanceAt",
        "balancesByMulticall",
        "balancesByOverride",
        "getChainId",
        "getHead",
        "getLogs",
        "getTransactionHashes",
        "simulateBlock",
        "traceTransaction"
      ]
    }
  }
]
