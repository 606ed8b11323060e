/** A block that identifies a network: a provider with another hash at this height serves another chain. */
export interface KnownBlock {
  readonly number: number
  /** Lower case. */
  readonly hash: string
}

const block = (number: number, hash: string): KnownBlock => ({ number, hash: `0x${hash}` })

// Each hash is in at least two independent sources. The first blocks: Nethermind's configs and
// EthereumJS's common (ethereum), 0xPolygon/polygon-cli and reth's polygon-p2p (polygon), Subsquid's reader and the
// fixtures of openscan-explorer/explorer (arbitrum; from before Nitro), Nethermind's configs and op-geth (optimism; from
// before Bedrock), Nethermind's configs and kona's registry (base).
//
// After it, for nodes that have pruned block 0, a finalized block, where two such sources have one in common:
// - ethereum, the first of Cancun: core/history/historymode.go of go-ethereum, and a header in a block verifier's tests
// - polygon and arbitrum: the same fixtures, and a header in tests of a Rust client each
// - optimism, the first of Bedrock: kona's registry and op-geth
// - base: none was found twice
const live: Readonly<Record<number, ReadonlyArray<KnownBlock>>> = {
  1: [
    block(0, "d4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3"),
    block(19_426_587, "f8e2f40d98fe5862bc947c8c83d34799c50fb344d7445d020a8a946d891b62ee")
  ],
  137: [
    block(0, "a9c28ce2141b56c474f1dc504bee9b01eb1bd7d1a507580d5519d4437a97de1b"),
    block(65_000_000, "40a243f82db77b7557e7b56808e93ef72c5bc83f16ad5ede236b496a78736eb6")
  ],
  42161: [
    block(0, "7ee576b35482195fc49205cec9af72ce14f003b9ae69f6ba0faef4514be8b442"),
    block(200_000_000, "fbb039d0d0e358b4d65f3df3058026fe5576beee3ed1fa2c1ad677d2efe0f3c1")
  ],
  10: [
    block(0, "7ca38a1916c42007829c55e69d3e9a73265554b586a499015373241b8a3fa48b"),
    block(105_235_063, "dbf6a80fef073de06add9b0d14026d6e5a86c85f6d102c36d3d8e9cf89c2afd3")
  ],
  8453: [block(0, "f712aa9241cc24369b143cf6dce85f0902a9731e70d66818a3a5845b296c73dd")]
}

// Besu and Nimbus (Sepolia), Erigon and Silkworm (Amoy), Erigon and a test of an Arbitrum client on reth (Arbitrum
// Sepolia), kona's registry and hildr (OP Sepolia and Base Sepolia).
const test: Readonly<Record<number, ReadonlyArray<KnownBlock>>> = {
  11155111: [block(0, "25a5cc106eea7138acab33231d7160d69cb777ee0c2c553fcddf5138993e6dd9")],
  80002: [block(0, "7202b2b53c5a0836e773e319d18922cc756dd67432f9a1f65352b61f4406c697")],
  421614: [block(0, "77194da4010e549a7028a9c3c51c3e277823be6ac7d138d0bb8a70197b5c004c")],
  11155420: [block(0, "102de6ffb001480cc9b8b548fd05c34cd4f46ae4aa91759393db90ea0409887d")],
  84532: [block(0, "0dcc9e089e30b90ddfc55be9a37dd15bc551aeee999d2e2b51414c54eaf934e4")]
}

/** By chain id, of the networks that have a preset; the first block first. */
export const knownBlocks: Readonly<Record<number, ReadonlyArray<KnownBlock>>> = { ...live, ...test }
