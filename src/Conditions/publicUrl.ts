/** What payers meet at `server.public_url`: whether anything answers there, and with which certificate. */
import type { X509Certificate } from "node:crypto"
import { isIP } from "node:net"
import { connect } from "node:tls"
import { Clock, Duration, Effect, Either } from "effect"
import type { SettingsShape } from "../Settings.ts"
import { type Condition, conditionOf } from "./standing.ts"

const day = 86_400_000
/** Days before its end at which a certificate should have been renewed. */
const soon = 14
const deadline = Duration.seconds(5)
const interval = "10 minutes"

/** A server's certificate; without one, the reason. */
const shownBy = (host: string, port: number) =>
  Effect.async<Either.Either<X509Certificate, string>>((resume) => {
    const named = isIP(host) === 0 ? { servername: host } : {}
    // What browsers trust is not asked: an authority of one's own is a choice.
    const socket = connect({ host, port, ...named, rejectUnauthorized: false }, () => {
      const shown = socket.getPeerX509Certificate()
      resume(Effect.succeed(shown === undefined ? Either.left("it shows no certificate") : Either.right(shown)))
    })
    socket.on("error", ({ message }) => resume(Effect.succeed(Either.left(message))))
    return Effect.sync(() => socket.destroy())
  }).pipe(
    Effect.timeoutTo({
      duration: deadline,
      onSuccess: (shown) => shown,
      onTimeout: () => Either.left(`no answer in ${Duration.toSeconds(deadline)} seconds`)
    })
  )

/** What is wrong with the certificate at an https URL now. Left: the reason why it shows none. */
export const lookAtPublicUrl = Effect.fn("Conditions.publicUrl")(function* (publicUrl: string) {
  const { hostname, origin, port } = new URL(publicUrl)
  const host = hostname.replace(/^\[|\]$/g, "")
  const answer = yield* shownBy(host, port === "" ? 443 : Number(port))
  const now = yield* Clock.currentTimeMillis
  return Either.map(answer, (shown): ReadonlyArray<Condition> => {
    const remedy = "renew it at the proxy in front of tilld, and reload the proxy: browsers refuse the checkout without"
    const days = (Date.parse(shown.validTo) - now) / day
    const bad = (what: string) => [conditionOf("certificate_bad", "", `${origin} shows a certificate ${what}`, remedy)]
    if (days < 0) return bad(`that expired on ${shown.validTo}`)
    const isNamed = isIP(host) === 0 ? shown.checkHost(host) : shown.checkIP(host)
    if (isNamed === undefined) return bad(`of another name: ${shown.subjectAltName}`)
    const ends = `the certificate at ${origin} ends on ${shown.validTo}, in ${Math.floor(days)} days`
    return days < soon ? [conditionOf("certificate_ends", "", ends, remedy)] : []
  })
})

/**
 * The judgement of `server.public_url`, and the worker that looks every ten minutes, and every minute while something is wrong.
 * For http there is none. `answered`: the URL that has answered once, which is kept over restarts by `remember`.
 */
export const makePublicUrl = ({ server: { publicUrl } }: Pick<SettingsShape, "server">) => {
  let answer: Either.Either<ReadonlyArray<Condition>, string> = Either.right([])
  let answered: string | undefined
  const gone = (reason: string) =>
    conditionOf(
      "proxy_gone",
      "",
      `nothing answers at ${publicUrl}: ${reason}`,
      "start the proxy in front of tilld: payers do not reach their pages"
    )
  const lookOnce = Effect.map(lookAtPublicUrl(publicUrl), (found) => {
    answer = found
    if (Either.isRight(found)) answered = publicUrl
  })
  // A machine that never reached itself by that name may be one that cannot.
  const conditions = () => Either.getOrElse(answer, (reason) => (answered === publicUrl ? [gone(reason)] : []))
  const pause = Effect.suspend(() => Effect.sleep(conditions().length === 0 ? interval : "1 minute"))
  const isHttps = publicUrl.startsWith("https:")
  return {
    answered: () => answered,
    conditions,
    remember: (url: string | undefined) => {
      answered ??= url
    },
    run: isHttps ? Effect.forever(Effect.zipRight(lookOnce, pause)) : Effect.never
  }
}
