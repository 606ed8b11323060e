import { existsSync, readFileSync } from "node:fs"

const fields = { now: /VmRSS:\s+(\d+)/, peak: /VmHWM:\s+(\d+)/ }

/** Resident memory of a process in MiB, as it is or the most that it was; NaN where the system does not tell. */
export const memoryOf = (pid: number, when: keyof typeof fields): number => {
  const status = `/proc/${pid}/status`
  return existsSync(status) ? Number(fields[when].exec(readFileSync(status, "utf8"))?.[1]) / 1024 : Number.NaN
}
