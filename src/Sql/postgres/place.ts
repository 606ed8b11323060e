import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import type { SettingsShape, SettingsSource } from "../../Settings.ts"
import { StoreUnusable } from "../StoreUnusable.ts"
import type { StorePlace } from "./Connection.ts"

type Postgres = NonNullable<SettingsShape["postgres"]>

/** The password: that of the file, or of the systemd credential `database-password`; undefined for none. */
const passwordOf = ({ passwordFile }: Postgres, env: SettingsSource["env"]): string | undefined => {
  const folder = env.CREDENTIALS_DIRECTORY
  const file = passwordFile !== "" ? passwordFile : folder === undefined ? "" : join(folder, "database-password")
  return file !== "" && (passwordFile !== "" || existsSync(file)) ? readFileSync(file, "utf8").trimEnd() : undefined
}

/** Where the PostgreSQL of the configuration is. TLS with a verified certificate, unless the URL says otherwise. */
export const placeOf = (postgres: Postgres, env: SettingsSource["env"]): Effect.Effect<StorePlace, StoreUnusable> =>
  Effect.try({
    try: () => {
      const { hostname, pathname, port, searchParams, username } = new URL(postgres.url)
      const ca = postgres.rootCertificate === "" ? {} : { ca: readFileSync(postgres.rootCertificate, "utf8") }
      const password = passwordOf(postgres, env)
      return {
        schema: postgres.schema,
        client: {
          host: hostname.replace(/^\[|\]$/g, ""),
          port: port === "" ? 5432 : Number(port),
          user: decodeURIComponent(username),
          database: decodeURIComponent(pathname.slice(1)),
          ...(password === undefined ? {} : { password }),
          ssl: searchParams.get("sslmode") === "disable" ? false : { ...ca, rejectUnauthorized: true }
        }
      }
    },
    catch: (cause) =>
      new StoreUnusable({
        message: `A file of [database] cannot be read (${cause instanceof Error ? cause.message : cause}): correct password_file or root_certificate, or their permissions`
      })
  })
