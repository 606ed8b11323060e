// What a request is signed with, as the platform's own crypto checks it.

const encoder = new TextEncoder()
const algorithm = { name: "HMAC", hash: "SHA-256" }
const prefix = "whsec_"

/** tilld sends two at most, while one secret takes the other's place. */
const mostSignatures = 8

type HmacKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>

const importKey = (bytes: Uint8Array<ArrayBuffer>) =>
  crypto.subtle.importKey("raw", bytes, algorithm, false, ["verify"])

const bytesOf = (base64: string) => Uint8Array.from(atob(base64), (char) => char.charCodeAt(0))

/** The bytes of a secret in the sense of Standard Webhooks, base64 of 24 to 64: tilld signs the time with no other. */
const standardBytes = (secret: string): Uint8Array<ArrayBuffer> | undefined => {
  const encoded = secret.slice(prefix.length)
  if (encoded.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(encoded)) return undefined
  const bytes = bytesOf(encoded)
  const isCanonical = btoa(String.fromCharCode(...bytes)) === encoded
  return isCanonical && bytes.length >= 24 && bytes.length <= 64 ? bytes : undefined
}

/** A webhook secret made ready for checking. */
export interface CheckingKey {
  /** Keyed with the whole secret, `whsec_` included. */
  readonly whole: HmacKey
  /** Undefined where the secret is none of Standard Webhooks. */
  readonly standard: HmacKey | undefined
}

export const checkingKey = async (secret: string): Promise<CheckingKey> => {
  // An empty key would accept what anybody has signed.
  if (typeof secret !== "string" || !/^whsec_./.test(secret)) {
    throw new TypeError("secrets must be one or more whsec_… strings")
  }
  const bytes = standardBytes(secret)
  return {
    whole: await importKey(encoder.encode(secret)),
    standard: bytes === undefined ? undefined : await importKey(bytes)
  }
}

/** The place of the key that made `signature`, -1 for none. All are tried, so that the time does not tell which it was. */
export const signerOf = async (
  keys: ReadonlyArray<HmacKey>,
  signature: Uint8Array<ArrayBuffer>,
  signed: Uint8Array<ArrayBuffer>
): Promise<number> => {
  const matches = await Promise.all(keys.map((key) => crypto.subtle.verify("HMAC", key, signature, signed)))
  return matches.indexOf(true)
}

/** The headers of Standard Webhooks 1.0.0, as they came. */
export interface StandardHeaders {
  readonly id: string
  readonly timestamp: string
  readonly signature: string
}

/** When one of `keys` signed the request, in Unix milliseconds; undefined where none of them did. */
export const standardTime = async (
  keys: ReadonlyArray<HmacKey>,
  { id, signature, timestamp }: StandardHeaders,
  body: Uint8Array<ArrayBuffer>
): Promise<number | undefined> => {
  const signatures = signature.split(" ")
  // Dots separate what is signed: an id with one could take its end from the time.
  const isWellFormed = /^[\w-]+$/.test(id) && /^\d{1,12}$/.test(timestamp) && signatures.length <= mostSignatures
  if (!isWellFormed) return undefined
  const head = encoder.encode(`${id}.${timestamp}.`)
  const signed = new Uint8Array(head.length + body.length)
  signed.set(head)
  signed.set(body, head.length)
  const made = signatures.flatMap((each) => {
    const base64 = /^v1,([A-Za-z0-9+/]{43}=)$/.exec(each)?.[1]
    return base64 === undefined ? [] : [bytesOf(base64)]
  })
  const signers = await Promise.all(made.map((bytes) => signerOf(keys, bytes, signed)))
  return signers.some((signer) => signer >= 0) ? Number(timestamp) * 1000 : undefined
}
