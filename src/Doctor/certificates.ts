import { X509Certificate } from "node:crypto"
import { readFileSync } from "node:fs"
import { Clock, Effect, Either } from "effect"
import { certificatesIn } from "../Settings/load.ts"
import type { SettingsShape } from "../Settings.ts"
import { type Finding, fail, ok, warn } from "./Finding.ts"

const day = 86_400_000
/** Days before the end at which a certificate is a warning. */
const soon = 30
/** Findings for each certificate of a PEM text, at `now`. */
export const examinePem = (file: string, pem: string, now: number): ReadonlyArray<Finding> => {
  const texts = certificatesIn(pem)
  const name = "certificates"
  const remedy = `put its successor into ${file}, and reload tilld: webhooks to receivers below it fail otherwise`
  if (texts.length === 0) return [fail(name, `${file} has no certificate in PEM`, "correct webhooks.extra_ca_file")]
  return texts.map((text) =>
    Either.try(() => new X509Certificate(text)).pipe(
      Either.match({
        onLeft: (error) => fail(name, `${file} has one that cannot be read: ${error}`, remedy),
        onRight: ({ subject, validFrom, validTo }) => {
          const who = subject.replaceAll("\n", ", ")
          const days = (Date.parse(validTo) - now) / day
          if (days < 0) return fail(name, `${who} expired on ${validTo}`, remedy)
          if (Date.parse(validFrom) > now) return fail(name, `${who} is not valid before ${validFrom}`, remedy)
          const finding = `${who} is valid until ${validTo}`
          return days < soon ? warn(name, `${finding}, for ${Math.floor(days)} days`, remedy) : ok(name, finding)
        }
      })
    )
  )
}

/** Checks the certificates of `webhooks.extra_ca_file`. No finding where none is configured. */
export const examineCertificates = Effect.fn("Doctor.certificates")(function* ({ webhooks }: SettingsShape) {
  const { extraCaFile } = webhooks
  if (extraCaFile === "") return []
  const now = yield* Clock.currentTimeMillis
  return Either.match(
    Either.try(() => readFileSync(extraCaFile, "utf8")),
    {
      onLeft: (error) => [fail("certificates", `${extraCaFile} cannot be read: ${error}`, "check its permissions")],
      onRight: (pem) => examinePem(extraCaFile, pem, now)
    }
  )
})
