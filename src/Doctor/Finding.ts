import type { RpcError } from "../Chains/rpc/RpcError.ts"

/** `fail`: tilld cannot work like this. `warn`: it can, and the operator should know. */
export type Status = "ok" | "warn" | "fail"

/** Result of one check. It holds no secret: of a URL, the host only. */
export interface Finding {
  readonly status: Status
  /** What was checked. */
  readonly name: string
  readonly finding: string
  /** The remedy; absent for `ok`, and where the finding says it. */
  readonly remedy?: string
}

/** A finding without a remedy. */
export const ok = (name: string, finding: string): Finding => ({ status: "ok", name, finding })
const asking =
  (status: Status) =>
  (name: string, finding: string, remedy?: string): Finding => ({
    status,
    name,
    finding,
    ...(remedy === undefined ? {} : { remedy })
  })
export const warn = asking("warn")
export const fail = asking("fail")

/** A provider that failed a call. */
export const failedCall = (name: string, { detail, method, reason }: RpcError, remedy: string): Finding =>
  fail(name, `${method} failed (${reason}): ${detail}`, remedy)
