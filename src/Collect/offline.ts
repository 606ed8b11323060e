/**
 * What a process does before it gets a seed. The hook stops what opens a socket by Node's interfaces, as by mistake; code that
 * goes around them is only stopped by the kernel's own wall: `unshare -rn` gives the process no network at all.
 */
import childProcess from "node:child_process"
import cluster from "node:cluster"
import dgram from "node:dgram"
import dns from "node:dns"
import { readFileSync, writeFileSync } from "node:fs"
import inspector from "node:inspector"
import { syncBuiltinESMExports } from "node:module"
import net from "node:net"
import workers from "node:worker_threads"
import { Effect } from "effect"

const forbidden = (what: string) =>
  // Also called with `new`.
  function refuse(): never {
    throw new Error(`${what} while a seed is in memory: tilld opens no socket and resolves no name then`)
  }

/** Replaces the methods of a module or a prototype. */
const forbid = (of: object, names: ReadonlyArray<string>, what: string) => {
  for (const name of names) Object.defineProperty(of, name, { value: forbidden(what), configurable: true })
}

const asksNameServer = (name: string) => /^(lookup|resolve|reverse)/.test(name)
const starters = ["exec", "execFile", "execFileSync", "execSync", "fork", "spawn", "spawnSync"]

/**
 * From now on whatever opens a socket, resolves a name, or starts a process or thread, which would not have this hook,
 * throws. Not undone.
 */
export const sealNetwork = Effect.sync(() => {
  forbid(net.Socket.prototype, ["connect"], "a connection")
  forbid(net.Server.prototype, ["listen"], "a listener")
  forbid(dgram.Socket.prototype, ["bind", "connect", "send"], "a datagram")
  for (const of of [dns, dns.promises, dns.Resolver.prototype, dns.promises.Resolver.prototype]) {
    forbid(of, Reflect.ownKeys(of).map(String).filter(asksNameServer), "a lookup of a name")
  }
  forbid(childProcess, starters, "a process")
  forbid(childProcess.ChildProcess.prototype, ["spawn"], "a process")
  forbid(cluster, ["fork"], "a process")
  forbid(inspector, ["open"], "a debugger's listener")
  forbid(workers, ["Worker"], "a thread")
  // What others have imported from these modules by name.
  syncBuiltinESMExports()
})

/** Keeps the process's memory out of a core dump where the system allows: Linux, which dumps what this filter names. */
export const withoutCoreDump: Effect.Effect<boolean> = Effect.sync(() => {
  const filter = "/proc/self/coredump_filter"
  try {
    writeFileSync(filter, "0")
    return /^0+\s*$/.test(readFileSync(filter, "utf8"))
  } catch {
    return false
  }
})

/** Both, before a seed is read. Says what could not be had. */
export const goOffline = Effect.zipRight(
  sealNetwork,
  Effect.tap(withoutCoreDump, (isOff) =>
    isOff
      ? Effect.void
      : Effect.logWarning("Core dumps cannot be switched off here: a crash may write the seed to disk")
  )
)
