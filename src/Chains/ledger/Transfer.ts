/** A transfer to a watched address, as read from a block. */
export interface Transfer {
  readonly blockNumber: number
  readonly blockHash: string
  readonly txHash: string
  /** Identifies it among the transfers of its block to its address: see `Receipt`. */
  readonly position: string
  /** The log's or the transaction's index in the block, as this provider numbers them: for order only. */
  readonly place: number
  /** The receiving address, lower case. */
  readonly address: string
  /**
   * Who sent it, lower case: the holder that a token's log names, or the sender of the transaction. Undefined for money
   * that moved inside contracts, whose sender is a contract.
   */
  readonly sender?: string | undefined
  /** The token's contract, lower case; undefined for native money. */
  readonly contract?: string | undefined
  /** The contract's configured currency: the payment may have been created with another (`currencyFor`). */
  readonly currency: string
  /** Base units, above zero. */
  readonly amount: bigint
}
