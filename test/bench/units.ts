/** Whose weights these are, and of when. */
export const source = "alchemy.com/docs/reference/compute-unit-costs, November 2026"

/**
 * What a provider with weighted plans counts for each call, whatever is in a batch. Read in the source above and in its
 * Markdown form; the methods that trace, in the page of each. Other plans weigh calls much alike: rpcfast.com
 * counts 65 for logs, 25 for a call and 19 for a balance.
 */
const weights: Readonly<Record<string, number>> = {
  eth_chainId: 0,
  eth_blockNumber: 10,
  eth_gasPrice: 20,
  eth_getBalance: 20,
  eth_getBlockByHash: 20,
  eth_getBlockByNumber: 20,
  eth_getBlockReceipts: 20,
  eth_getTransactionByHash: 20,
  eth_getTransactionCount: 20,
  eth_getTransactionReceipt: 20,
  eth_call: 26,
  debug_traceTransaction: 40,
  debug_traceBlockByHash: 40,
  debug_traceBlockByNumber: 40,
  eth_simulateV1: 40,
  eth_getLogs: 60
}

const weightOf = (method: string): number => {
  const weight = weights[method]
  // A method that is not in the table must not seem to cost nothing.
  if (weight === undefined) throw new Error(`no weight is known for ${method}`)
  return weight
}

/** The units of calls that are counted by their method. */
export const unitsOf = (calls: ReadonlyMap<string, number>): number =>
  [...calls].reduce((sum, [method, number]) => sum + number * weightOf(method), 0)
