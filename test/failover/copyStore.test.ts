import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { blindJump } from "../../src/Payments/addresses/IndexMark.ts"
import { change } from "../Backup/backing.ts"
import { confirmations, type Home, homeOn, pay, serve } from "../lib/daemon.ts"
import { makeInbox } from "../lib/inbox.ts"
import { administer, login, postgresServer, urlOf } from "../lib/postgres.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { startTilld, tilld } from "../lib/tilld.ts"

const hookPath = "/hook"

liveTest(
  "a store that moves to PostgreSQL and back goes on where it was, and its former places do not start",
  function* () {
    const port = yield* postgresServer()
    yield* administer(port, "postgres", "CREATE DATABASE shop")
    const inbox = yield* makeInbox()
    const { chain, home: plain } = yield* homeOn("base", { caFile: inbox.caFile })
    const { folder } = plain
    const text = readFileSync(plain.config, "utf8")
    const marks = `mark_folder = "${folder}/../marks-of-${folder.split("/").at(-1)}"`
    const homeWith = (name: string, database: string, store: string): Home => {
      const config = join(folder, `${name}.toml`)
      writeFileSync(config, text.replace(/\[database\]\npath = .*/, `[database]\n${marks}\n${store}`))
      return { ...plain, config, database }
    }
    writeFileSync(join(folder, "password"), login.password, { mode: 0o600 })
    const file = homeWith("file", plain.database, `path = "${plain.database}"`)
    const server = homeWith(
      "server",
      plain.database,
      `engine = "postgres"\nurl = "${urlOf(port, "shop")}"\npassword_file = "${folder}/password"\n[node]\nfolder = "${folder}"`
    )
    const back = homeWith("back", join(folder, "back.db"), `path = "${folder}/back.db"`)
    const copy = (...words: ReadonlyArray<string>) =>
      Effect.map(tilld(["store", "copy", ...words, "--config", server.config]), (ended) => {
        expect(ended).toMatchObject({
          code: 0,
          stdout: expect.stringContaining("The address numbering goes on where it was")
        })
      })
    const refused = (home: Home, where: string) =>
      Effect.gen(function* () {
        const running = yield* startTilld(["serve", "--config", home.config])
        expect(yield* running.ended).toMatchObject({
          code: 2,
          stderr: expect.stringContaining(`was moved to ${where}`)
        })
      })
    const made: Array<{ readonly id: string; readonly address: string }> = []
    let key: string | undefined
    let paid: { readonly id: string; readonly address: string } | undefined

    /** Runs a daemon: what is paid for before is confirmed, and two payments are made, of which one is paid. */
    const live = (home: Home) =>
      Effect.gen(function* () {
        const daemon = yield* key === undefined ? serve(home) : serve(home, key)
        key = daemon.key
        for (const each of made) expect(yield* daemon.payment(each)).toMatchObject(each)
        yield* chain.mine(confirmations)
        if (paid !== undefined) yield* inbox.take(hookPath, paid as never, "payment.confirmed")
        const events = yield* daemon.call<{ data: ReadonlyArray<unknown> }>("GET", "/v1/payments?limit=100")
        expect(events.body.data).toHaveLength(made.length)
        for (const _ of [1, 2]) {
          const order = {
            chain: "base",
            currency: "USDC",
            amount: "25000000",
            webhookUrl: inbox.url + hookPath
          } as const
          const payment = yield* daemon.create(order)
          // The next index of the wallet: nothing was skipped, and none is given twice.
          expect(payment.address).toBe(plain.address(made.length))
          made.push({ id: payment.id, address: payment.address })
          yield* inbox.take(hookPath, payment, "payment.created")
          paid = payment
          if (made.length % 2 === 0) yield* pay(chain, payment)
        }
        yield* chain.mine()
        yield* daemon.hasRead(chain)
        if (paid !== undefined) yield* inbox.take(hookPath, paid as never, "payment.detecting")
      }).pipe(Effect.scoped)

    yield* live(file)
    const stale = join(folder, "stale.db")
    yield* change(file.database, `VACUUM INTO '${stale}'`)
    yield* copy("--from", file.database)
    yield* refused(file, "postgres://")
    yield* live(server)
    yield* copy("--to", back.database)
    yield* refused(server, back.database)
    yield* live(back)
    expect(made).toHaveLength(6)

    // A copy from before the move: it lacks four payments, whose addresses it must not give again.
    yield* administer(port, "postgres", "CREATE DATABASE other")
    const other = homeWith(
      "other",
      file.database,
      readFileSync(server.config, "utf8")
        .match(/engine[^[]*\[node\]\n.*/)?.[0]
        .replace("/shop", "/other") ?? ""
    )
    const copied = yield* tilld(["store", "copy", "--from", stale, "--config", other.config])
    expect(copied.stdout).toContain(
      "so that no address is given twice: the database is older than the last address handed out"
    )
    const again = yield* serve(other, key)
    const { address } = yield* again.create({ chain: "base", currency: "USDC", amount: "1000000" })
    expect(address).toBe(plain.address(made.length + blindJump))
  }
)
