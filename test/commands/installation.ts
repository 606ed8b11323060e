import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { waitForLog } from "../lib/daemon.ts"
import { testXpub } from "../lib/settings.ts"
import { temporaryFolder } from "../lib/store.ts"
import { tilld as run, startDaemonHere } from "../lib/tilld.ts"

/** A configuration of one chain, whose provider no one reaches. */
export const configuration = `
[server]
port = 0
public_url = "https://pay.example.com"
[database]
path = "data/tilld.db"
[wallets]
test = "${testXpub}"
[chains.base.test]
rpc_urls = ["http://127.0.0.1:1"]
`
export const masterKey = Buffer.alloc(32, 7).toString("base64")

/** An installation in a folder of its own, `tilld` in it, and a daemon of it in this process once that is started. */
export const installation = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  writeFileSync(join(folder, "tilld.toml"), configuration)
  mkdirSync(join(folder, "data"))
  const tilld = (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}, input?: string) =>
    run(args, {
      env: {
        TILLD_CONFIG: join(folder, "tilld.toml"),
        TILLD_MASTER_KEY: masterKey,
        SUDO_USER: "alice",
        ...env
      },
      ...(input === undefined ? {} : { input })
    })
  const start = (env: Readonly<Record<string, string>> = {}) =>
    Effect.tap(
      startDaemonHere(join(folder, "tilld.toml"), { TILLD_MASTER_KEY: masterKey, SUDO_USER: "alice", ...env }),
      (running) => waitForLog(running, "listening")
    )
  return { folder, tilld, start, database: join(folder, "data/tilld.db") }
})

/** The same beside its daemon. */
export const besideDaemon = Effect.tap(installation, ({ start }) => start())
