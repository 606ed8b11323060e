import { X509Certificate } from "node:crypto"
import { readFileSync } from "node:fs"
import { isIP } from "node:net"
import { connect } from "node:tls"
import { Clock, Duration, Effect, Either } from "effect"
import type { SettingsShape } from "../Settings.ts"
import { type Finding, fail, ok, warn } from "./Finding.ts"

const day = 86_400_000
/** Days before the end at which a certificate is a warning. */
const soon = 30
/** The same for one that its server renews by itself, a third of its life before its end. */
const overdue = 7
/** Time limit for a server's certificate. */
const deadline = Duration.seconds(5)

/** Findings for each certificate of a PEM text, at `now`. */
export const examinePem = (file: string, pem: string, now: number): ReadonlyArray<Finding> => {
  const texts = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? []
  const name = "certificates"
  const remedy = `put its successor into ${file}, and restart tilld: webhooks to receivers below it fail otherwise`
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

/** A server's certificate, and why this machine does not trust it; without one, the reason. */
const shownBy = (host: string, port: number) =>
  Effect.async<Either.Either<{ readonly shown: X509Certificate; readonly distrust: string | undefined }, string>>(
    (resume) => {
      const named = isIP(host) === 0 ? { servername: host } : {}
      const socket = connect({ host, port, ...named, rejectUnauthorized: false }, () => {
        const shown = socket.getPeerX509Certificate()
        const distrust = socket.authorized ? undefined : String(socket.authorizationError)
        resume(
          Effect.succeed(
            shown === undefined ? Either.left("it shows no certificate") : Either.right({ shown, distrust })
          )
        )
      })
      socket.on("error", ({ message }) => resume(Effect.succeed(Either.left(message))))
      return Effect.sync(() => socket.destroy())
    }
  ).pipe(
    Effect.timeoutTo({
      duration: deadline,
      onSuccess: (shown) => shown,
      onTimeout: () => Either.left(`no answer in ${Duration.toSeconds(deadline)} seconds`)
    })
  )

/** Checks the certificate of `server.public_url`, as seen from this machine. No finding for http. */
export const examinePublicUrl = Effect.fn("Doctor.publicUrl")(function* ({ server }: SettingsShape) {
  const { hostname, origin, port, protocol } = new URL(server.publicUrl)
  if (protocol !== "https:") return []
  const name = "certificates"
  const host = hostname.replace(/^\[|\]$/g, "")
  const answer = yield* shownBy(host, port === "" ? 443 : Number(port))
  const now = yield* Clock.currentTimeMillis
  return Either.match(answer, {
    onLeft: (reason) => [
      warn(
        name,
        `${origin} (server.public_url) shows none to this machine: ${reason}`,
        "start the proxy in front of tilld; if this machine cannot reach itself by that name, look at it from another"
      )
    ],
    onRight: ({ distrust, shown }) => {
      const finding = `${origin} shows one that is valid until ${shown.validTo}`
      const days = (Date.parse(shown.validTo) - now) / day
      const renew =
        "renew it at the proxy in front of tilld, and reload the proxy: browsers refuse the checkout without"
      if (days < 0) return [fail(name, `${origin} shows one that expired on ${shown.validTo}`, renew)]
      const isNamed = isIP(host) === 0 ? shown.checkHost(host) : shown.checkIP(host)
      if (isNamed === undefined)
        return [fail(name, `${origin} shows one of another name: ${shown.subjectAltName}`, renew)]
      if (days < overdue) return [warn(name, `${finding}, for ${Math.floor(days)} days`, renew)]
      return distrust === undefined
        ? [ok(name, finding)]
        : [warn(name, `${finding}, which this machine does not trust (${distrust})`, "take one that browsers know")]
    }
  })
})
