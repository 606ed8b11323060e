/**
 * Tells systemd that the daemon is ready, alive and stopping (sd_notify(3)), through its program systemd-notify: Node has no
 * datagram sockets of the Unix domain. systemd finds the sender's unit by the sender's cgroup, which is gone with the
 * process; systemd-notify therefore waits until its message has been read, unless --no-block. The unit needs
 * NotifyAccess=all, since the sender is not the main process. Called by `main`.
 */
import { spawn } from "node:child_process"
import { Duration, Effect, Either, Schedule } from "effect"

type Environment = Readonly<Record<string, string | undefined>>

/** Milliseconds after which the program is ended. It waits for systemd for 5 seconds by itself. */
const deadline = 10_000

/** Sends variables to the socket that the environment names. Fails with the reason. */
const sendBy =
  ({ NOTIFY_SOCKET, PATH }: Environment) =>
  (...variables: ReadonlyArray<string>): Effect.Effect<void, string> =>
    Effect.async((resume) => {
      const started = Either.try(() =>
        spawn("systemd-notify", variables, {
          env: { NOTIFY_SOCKET, PATH },
          stdio: "ignore",
          timeout: deadline,
          killSignal: "SIGKILL"
        })
      )
      if (Either.isLeft(started)) return resume(Effect.fail(String(started.left)))
      started.right.once("error", ({ message }) => resume(Effect.fail(message)))
      started.right.once("exit", (code, signal) =>
        resume(code === 0 ? Effect.void : Effect.fail(`systemd-notify ended with ${code ?? signal}`))
      )
    })

/** The interval of watchdog messages: half of systemd's limit. Undefined: it expects none from this process. */
const pauseOf = ({ WATCHDOG_PID, WATCHDOG_USEC }: Environment): Duration.Duration | undefined => {
  const allowed = Number(WATCHDOG_USEC)
  const isMeant = WATCHDOG_PID === undefined || WATCHDOG_PID === String(process.pid)
  return isMeant && allowed > 0 ? Duration.millis(allowed / 2000) : undefined
}

/**
 * Says READY=1 once `ready` completes, then WATCHDOG=1 at half of WATCHDOG_USEC from the event loop, and STOPPING=1
 * when interrupted. Does nothing without NOTIFY_SOCKET. A failure is a warning, once, and stops nothing.
 */
export const notifyServiceManager = (
  env: Environment,
  ready: Effect.Effect<void>,
  send: (...variables: ReadonlyArray<string>) => Effect.Effect<void, string> = sendBy(env)
): Effect.Effect<never> =>
  Effect.suspend(() => {
    if (!env.NOTIFY_SOCKET) return Effect.never
    let failing = false
    const tell = (...variables: ReadonlyArray<string>) =>
      Effect.matchEffect(
        Effect.suspend(() => send(...variables)),
        {
          onSuccess: () =>
            Effect.sync(() => {
              failing = false
            }),
          onFailure: (reason) => {
            if (failing) return Effect.void
            failing = true
            return Effect.logWarning(
              `the daemon's state cannot be reported to systemd (${reason}): install systemd-notify, or take Type=notify and ` +
                "WatchdogSec out of the unit, since systemd ends a service without watchdog messages"
            )
          }
        }
      )
    const pause = pauseOf(env)
    const live = pause === undefined ? Effect.never : Effect.repeat(tell("WATCHDOG=1"), Schedule.fixed(pause))
    return Effect.zipRight(ready, tell("READY=1")).pipe(
      Effect.zipRight(live),
      Effect.zipRight(Effect.never),
      Effect.onInterrupt(() => tell("STOPPING=1"))
    )
  })
