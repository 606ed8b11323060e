import { readFileSync } from "node:fs"
import { describe, expect, layer } from "@effect/vitest"
import { Context, Effect, Layer, Schedule } from "effect"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import { localChain, makeHome } from "../lib/daemon.ts"
import { bootContainer, lackForContainer } from "./container.ts"
import { deb, next, out, version } from "./making.ts"
import { expectPages, get, shopOf } from "./shop.ts"

const settings = "--config /etc/tilld/tilld.toml"
const port = 8080

/** A container with the package of the version, and a chain that it can reach. */
const boot = Effect.gen(function* () {
  const container = yield* bootContainer(out)
  const chain = yield* localChain("base")
  yield* chain.mine(20, 2)
  yield* container.lend(chain.port)
  const home = yield* makeHome({ chains: new Map([["base", chain]]), port })
  const config = readFileSync(home.config, "utf8").replace(home.database, "/var/lib/tilld/tilld.db")
  yield* container.sh(`dpkg -i /given/${deb(version)}`)
  return { ...container, chain, config, url: `http://127.0.0.1:${yield* container.reach(port)}` }
})
class Booted extends Context.Tag("test/Booted")<Booted, Effect.Effect.Success<typeof boot>>() {
  static readonly layer = Layer.scoped(Booted, boot)
}

/** What systemd knows of the daemon. */
const state = (...properties: ReadonlyArray<string>) =>
  Effect.flatMap(Booted, ({ sh }) =>
    Effect.map(sh(`systemctl show tilld --property=${properties.join(",")}`), (output) =>
      Object.fromEntries(output.split("\n").map((line) => line.split("=")))
    )
  )
/** What the doctor says, who must find no problem, once the daemon is ready. */
const doctor = Effect.flatMap(Booted, ({ sh, url }) =>
  Effect.repeat(get(`${url}/readyz`), {
    schedule: Schedule.spaced("100 millis"),
    until: ({ status }) => status === 200
  }).pipe(Effect.zipRight(sh(`tilld doctor ${settings}`)))
)
/** Waits until it has been started again this often by itself. */
const restarted = (times: number) =>
  Effect.flatMap(Booted, ({ until }) =>
    until(
      "systemctl is-active tilld; systemctl show tilld --value --property=NRestarts",
      RegExp(`^active\n${times}$`, "m")
    )
  )
const reports = "journalctl --identifier tilld-failed --priority crit --output cat"

/** Tests of the packages in `out`, which need each other in this order. */
export const underSystemd = () => {
  const lack = lackForContainer()
  describe.skipIf(lack !== undefined)(`under a booted systemd${lack === undefined ? "" : `: ${lack}`}`, () =>
    layer(Booted.layer, { excludeTestServices: true })("the package", (it) => {
      let shop: ReturnType<typeof shopOf>
      let paid: PaymentObject
      const isKept = Effect.suspend(() =>
        Effect.map(shop.payment(paid), ({ status }) => expect(status).toBe("confirmed"))
      )

      it.effect("is not restarted without a master key, and the journal names the file at priority crit", () =>
        Effect.gen(function* () {
          const { run, until } = yield* Booted
          expect((yield* run("systemctl start tilld")).status).not.toBe(0)
          yield* until(reports, /^tilld: a credential .* \/etc\/tilld\/master-key$/m)
          expect(yield* state("ActiveState", "NRestarts", "ExecMainStatus")).toMatchObject({
            ActiveState: "failed",
            NRestarts: "0",
            ExecMainStatus: "243"
          })
        })
      )

      it.effect("counts as started once it listens, is ready, and the doctor finds no problem", () =>
        Effect.gen(function* () {
          const { config, sh, url } = yield* Booted
          yield* sh(`cat > /etc/tilld/tilld.toml <<'END'\n${config}\nEND`)
          yield* sh("(umask 077; openssl rand -base64 32 > /etc/tilld/master-key) && systemctl enable --now tilld")
          expect((yield* get(`${url}/healthz`)).status).toBe(200)
          expect(yield* doctor).toMatch(/^(all|0 problems,)/)
        })
      )

      it.effect("takes a payment", () =>
        Effect.gen(function* () {
          const { chain, sh, url } = yield* Booted
          const { key } = JSON.parse(yield* sh(`tilld keys create --mode test --name shop ${settings} --json`))
          shop = shopOf(url, key, chain)
          paid = yield* shop.create("first")
          yield* shop.settle(paid)
        })
      )

      it.effect("is replaced when it is killed or hangs, and has what it acknowledged", () =>
        Effect.gen(function* () {
          const { sh } = yield* Booted
          yield* sh("systemctl kill --kill-whom=main --signal=KILL tilld")
          yield* restarted(1)
          yield* isKept

          yield* sh("mkdir /etc/systemd/system/tilld.service.d")
          yield* sh("printf '[Service]\\nWatchdogSec=5\\n' > /etc/systemd/system/tilld.service.d/watchdog.conf")
          yield* sh("systemctl daemon-reload && systemctl restart tilld")
          const created = yield* shop.create("before it hangs")
          yield* sh("systemctl kill --kill-whom=main --signal=STOP tilld")
          yield* restarted(1)
          yield* isKept
          expect(yield* shop.payment(created)).toMatchObject({ merchantRef: "before it hangs", status: "pending" })
          expect(yield* sh("journalctl --unit tilld --output cat")).toMatch("Watchdog timeout (limit 5s)!")
        })
      )

      it.effect("is backed up and examined by its units, which are as little exposed as it is", () =>
        Effect.gen(function* () {
          const { sh } = yield* Booted
          yield* doctor
          yield* sh("systemctl start tilld-backup tilld-doctor")
          expect(yield* sh("ls /var/lib/tilld-backups")).toMatch(/^tilld-.*\.db$/m)
          expect(yield* sh("journalctl --unit tilld-doctor --output cat")).toMatch(/^(all|0 problems,)/m)
          for (const unit of ["tilld", "tilld-backup", "tilld-doctor"]) {
            const [, exposure] =
              /exposure level for .*: ([0-9.]+)/.exec(
                yield* sh(`systemd-analyze security --no-pager ${unit}.service`)
              ) ?? []
            expect(Number(exposure), unit).toBeLessThanOrEqual(1.2)
          }
        })
      )

      it.effect("is not restarted with a broken configuration, and the report has the reason", () =>
        Effect.gen(function* () {
          const { run, sh, until } = yield* Booted
          yield* sh("sed -i.whole 's/^port = .*/prot = 1/' /etc/tilld/tilld.toml")
          // The journal is behind.
          yield* sh("systemctl kill --signal=STOP systemd-journald")
          expect((yield* run("systemctl restart tilld")).status).not.toBe(0)
          yield* sh("systemctl kill --signal=CONT systemd-journald")
          yield* until(reports, /^tilld: .*server\.prot: is not a key/m)
          expect(yield* state("ActiveState", "NRestarts", "ExecMainStatus")).toMatchObject({
            ActiveState: "failed",
            NRestarts: "0",
            ExecMainStatus: "2"
          })
          yield* sh("cat /etc/tilld/tilld.toml.whole > /etc/tilld/tilld.toml && systemctl start tilld")
          yield* isKept
        })
      )

      it.effect("keeps its pages while the next version is unpacked beside it, which then takes its place", () =>
        Effect.gen(function* () {
          const { sh, url } = yield* Booted
          const { MainPID } = yield* state("MainPID")
          yield* sh(`dpkg --unpack /given/${deb(next)} && sh /opt/tilld/packaged/install.sh --packaged`)
          expect(yield* sh("tilld --version")).toMatch(next)
          yield* expectPages(url, paid.checkoutUrl)
          expect(yield* state("MainPID")).toEqual({ MainPID })
          expect(yield* doctor).toMatch(`runs version ${version}, and this command is ${next}`)
          // As `dpkg --install` goes on: it restarts the daemon.
          yield* sh("dpkg --configure tilld")
          expect(yield* doctor).toMatch(`runs version ${next}\n`)
          yield* sh("systemctl restart tilld")
          expect(yield* doctor).toMatch(`runs version ${next}\n`)
          yield* isKept
        })
      )

      it.effect("stops on request", () =>
        Effect.gen(function* () {
          const { sh } = yield* Booted
          yield* sh("systemctl stop tilld")
          expect(yield* state("ActiveState", "Result")).toMatchObject({ ActiveState: "inactive", Result: "success" })
        })
      )

      it.effect("is removed with its units, and systemd complains of none", () =>
        Effect.gen(function* () {
          const { sh } = yield* Booted
          expect(yield* sh("dpkg -r tilld 2>&1")).not.toMatch(/Failed/)
          expect(yield* sh("systemctl list-unit-files --no-legend 'tilld*' || true")).toBe("")
        })
      )
    })
  )
}
