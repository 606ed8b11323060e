import { parentPort } from "node:worker_threads"
import { receivingAddress } from "../../Settings/childKey.ts"
import type { IndexRange } from "./AddressPool.ts"

// The worker thread of `AddressPool.ts`.
parentPort?.on("message", ({ count, external, from }: IndexRange) => {
  parentPort?.postMessage(Array.from({ length: count }, (_, i) => receivingAddress(external, from + i)))
})
