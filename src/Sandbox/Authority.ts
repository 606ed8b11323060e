import { isIP } from "node:net"
import { Effect } from "effect"

/** A private key and its certificate, in PEM. */
export interface Identity {
  readonly key: string
  readonly certificate: string
}

/** A certificate authority of the sandbox: a client that trusts `certificate` trusts what it issues. */
export interface Authority {
  /** PEM. */
  readonly certificate: string
  /** A server certificate for host names and IP addresses, valid for a year. */
  readonly issue: (hosts: ReadonlyArray<string>) => Effect.Effect<Identity>
}

// P-256: an RSA key takes a hundred times as long to make.
const kind = { keyType: "ec", curve: "P-256", algorithm: "sha256" } as const

/** Makes a new authority; its private key never leaves the process. */
export const makeAuthority: Effect.Effect<Authority> = Effect.gen(function* () {
  // Loaded here: that takes 130 ms, and nothing but the sandbox needs it.
  // A bundle gives a CommonJS package as the default export only.
  const { generate } = (yield* Effect.promise(() => import("selfsigned"))).default
  const root = yield* Effect.promise(() =>
    generate([{ name: "commonName", value: "tilld sandbox authority" }], {
      ...kind,
      extensions: [
        { name: "basicConstraints", cA: true, critical: true },
        { name: "keyUsage", keyCertSign: true, cRLSign: true, critical: true }
      ]
    })
  )
  const issue = Effect.fn("Authority.issue")(function* (hosts: ReadonlyArray<string>) {
    const leaf = yield* Effect.promise(() =>
      generate([{ name: "commonName", value: hosts[0] ?? "localhost" }], {
        ...kind,
        ca: { key: root.private, cert: root.cert },
        extensions: [
          { name: "basicConstraints", cA: false, critical: true },
          { name: "keyUsage", digitalSignature: true, critical: true },
          { name: "extKeyUsage", serverAuth: true },
          {
            name: "subjectAltName",
            altNames: hosts.map((host) => (isIP(host) === 0 ? { type: 2, value: host } : { type: 7, ip: host }))
          }
        ]
      })
    )
    return { key: leaf.private, certificate: leaf.cert }
  })
  return { certificate: root.cert, issue }
}).pipe(Effect.withSpan("Authority.make"))
