import type { RpcError } from "../Chains/rpc/RpcError.ts"

/** `fail`: tilld cannot do its work so. `warn`: it can, and somebody should know. */
export type Status = "ok" | "warn" | "fail"

/** What one look has found. Nothing in it is secret: of a URL it has the host. */
export interface Finding {
  readonly status: Status
  /** What was looked at. */
  readonly name: string
  readonly finding: string
  /** What to do about it, unless it is fine. */
  readonly remedy?: string
}

export const ok = (name: string, finding: string): Finding => ({ status: "ok", name, finding })
export const warn = (name: string, finding: string, remedy: string): Finding => ({
  status: "warn",
  name,
  finding,
  remedy
})
export const fail = (name: string, finding: string, remedy: string): Finding => ({
  status: "fail",
  name,
  finding,
  remedy
})

/** What a provider did not answer. */
export const failedCall = (name: string, { detail, method, reason }: RpcError, remedy: string): Finding =>
  fail(name, `${method} failed (${reason}): ${detail}`, remedy)
