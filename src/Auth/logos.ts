/**
 * Logos of checkouts: images that were uploaded, or that the operator puts into `checkout.logo_folder`. Those of the default account are at its
 * top, those of another account in a folder with its id as name: no account can use, or tell, another's.
 */
import { constants } from "node:fs"
import { type FileHandle, open, readdir } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Predicate, Schema } from "effect"
import { ShopRefused } from "../Domain/Account.ts"
import type { AccountId } from "../Domain/Ids.ts"
import { LogoFile } from "../Domain/Shop.ts"
import { Settings } from "../Settings.ts"
import { Reader } from "../Sql.ts"
import { defaultAccount } from "./Accounts.ts"
import { logoImage } from "./logoImages.ts"

/** Bytes. */
const largest = 256 * 1024
/** Files that a refusal names. */
const mostNamed = 20

/** Neither follows a link nor waits for a pipe. */
const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

const isLogo = Schema.is(LogoFile)

/** Which logos there are, for a caller that named another one. */
const whatIsThere = (folder: string, within: string) =>
  Effect.promise(() => readdir(folder, { withFileTypes: true }).catch(() => [])).pipe(
    Effect.map((entries) => {
      const names = entries.filter((entry) => entry.isFile() && isLogo(entry.name)).map(({ name }) => name)
      const listed = [...names.sort().slice(0, mostNamed), ...(names.length > mostNamed ? ["…"] : [])]
      const there =
        listed.length === 0 ? "there is none yet" : `there ${names.length === 1 ? "is" : "are"} ${listed.join(", ")}`
      return new ShopRefused({ part: "logo", rule: `must be an image in the folder ${within}, where ${there}` })
    })
  )

const rule = (text: string) => new ShopRefused({ part: "logo", rule: text })

const contents = (file: FileHandle) =>
  Effect.gen(function* () {
    const stat = yield* Effect.promise(() => file.stat())
    if (!stat.isFile()) return yield* rule("must be a file")
    if (stat.size > largest) {
      return yield* rule(`must be at most ${largest / 1024} KiB, and has ${Math.ceil(stat.size / 1024)}`)
    }
    const { bytesRead, buffer } = yield* Effect.promise(() => file.read({ buffer: Buffer.alloc(stat.size) }))
    return buffer.subarray(0, bytesRead)
  })

/** The bytes of an account's logo, at most 256 KiB; or why it cannot be shown. */
export const readLogo = Effect.fn("logos.read")(function* (account: AccountId, name: typeof LogoFile.Type) {
  const uploaded = yield* logoImage(yield* Reader, account, name)
  if (uploaded !== undefined) return uploaded
  const { logoFolder } = (yield* Settings).checkout
  const [folder, within] =
    account === defaultAccount
      ? [logoFolder, "checkout.logo_folder"]
      : [join(logoFolder, account), `checkout.logo_folder/${account}`]
  const opened = Effect.tryPromise({
    try: () => open(join(folder, name), flags),
    catch: (error) => (Predicate.hasProperty(error, "code") ? String(error.code) : "unknown")
  })
  return yield* Effect.acquireUseRelease(opened, contents, (file) => Effect.promise(() => file.close())).pipe(
    Effect.catchIf(Predicate.isString, (code) =>
      code === "ENOENT" || code === "ENOTDIR"
        ? Effect.flatMap(whatIsThere(folder, within), Effect.fail)
        : rule(code === "ELOOP" ? "must be a file itself, not a symbolic link" : `must be readable for tilld (${code})`)
    )
  )
})
