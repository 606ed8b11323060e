import { Duration, Option, ParseResult, Record, Redacted, Schema } from "effect"
import ipaddr from "ipaddr.js"
import { getAddress, isAddress, zeroAddress } from "viem"
import { walletIdentity } from "./hdWallet.ts"

/**
 * Shows a value shortened: enough to recognise it, too little to reveal a secret that was pasted into the wrong place.
 */
export const show = (value: unknown): string => {
  if (typeof value === "string")
    return value.length <= 24 ? JSON.stringify(value) : `a text of ${value.length} characters`
  if (typeof value === "number" || typeof value === "boolean" || typeof value === "bigint") return String(value)
  if (value instanceof Date) return "a date"
  return Array.isArray(value) ? "an array" : "a section"
}

/** Adds an error message with the rule and the value that was found. The rule is also the description. */
const must = <A, I>(rule: string, schema: Schema.Schema<A, I>): Schema.Schema<A, I> =>
  schema.annotations({
    description: `must be ${rule}`,
    message: ({ actual }) => ({ message: `must be ${rule}; found ${show(actual)}`, override: true })
  })

/** As `must`, but the value that was found is not shown: it may contain a secret. */
const mustSecretly = <A>(rule: string, schema: Schema.Schema<A, string>): Schema.Schema<A, string> =>
  schema.annotations({
    description: `must be ${rule}`,
    message: () => ({ message: `must be ${rule} (what was found is not shown)`, override: true })
  })

const textThat = (fits: (value: string) => boolean) => Schema.String.pipe(Schema.filter(fits))

/** A text that is changed before it is used. */
const converted = (fits: (value: string) => boolean, convert: (value: string) => string) =>
  Schema.transform(textThat(fits), Schema.String, { strict: true, decode: convert, encode: (value) => value })

const loopback = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/

const withoutTrailingSlash = (url: string) => url.replace(/(?<!\/)\/+$/, "")

export const integer = (min: number, max: number, note = "") =>
  must(`a whole number from ${min} to ${max}${note}`, Schema.Int.pipe(Schema.between(min, max)))

export const oneOf = <const A extends ReadonlyArray<string>>(...values: A) =>
  must(`one of ${values.map((value) => `"${value}"`).join(", ")}`, Schema.Literal(...values))

export const flag = must("true or false", Schema.Boolean)

export const nonEmpty = must(
  "a text that is not empty",
  textThat((value) => value.trim() !== "")
)

export const databasePath = must(
  "the path of a file, outside memory: what was acknowledged must survive",
  textThat((value) => value.trim() !== "" && !/^:memory:|^file:|[/\0]$/.test(value))
)

export const anyText = must("a text", Schema.String)

const isPostgresUrl = (value: string): boolean => {
  if (!isUrl(value, "postgres:", "postgresql:")) return false
  const { hash, hostname, password, pathname, search, username } = new URL(value)
  const isPlace = hostname !== "" && username !== "" && /^\/[^/]+$/.test(pathname)
  return isPlace && `${password}${hash}` === "" && /^(\?sslmode=(disable|verify-full))?$/.test(search)
}

/** Without a password: a file or a credential has that. */
export const postgresUrl = mustSecretly(
  'postgres://USER@HOST:PORT/DATABASE without a password, with ?sslmode=disable for a private network, or "" for none',
  textThat((value) => value === "" || isPostgresUrl(value))
)

/** A name that PostgreSQL and its tools take without quotes. */
export const identifier = must(
  "up to 40 lower-case letters, digits and _, a letter first",
  textThat((value) => /^[a-z][a-z0-9_]{0,39}$/.test(value))
)

export const nodeName = must(
  'up to 60 letters, digits, ".", "_" and "-"; "" for the name of the machine',
  textThat((value) => /^[A-Za-z0-9._-]{0,60}$/.test(value))
)

const hasNoDuplicates = (items: ReadonlyArray<unknown>) =>
  new Set(items.map((item) => (Redacted.isRedacted(item) ? Redacted.value(item) : item))).size === items.length

/** Names of this machine in hosts files. So is each name below `localhost`. */
const loopbackName = /^(.+\.)?localhost$|^localhost\.localdomain$|^ip6-(localhost|loopback)$/

/** A host in one form: an IPv4 address in IPv6 leads to the same node, as all names and addresses of this machine do. */
const hostOf = (hostname: string): string => {
  const host = hostname.replace(/^\[|\]$|\.$/g, "")
  if (!ipaddr.isValid(host)) return loopbackName.test(host) ? "localhost" : host
  const address = ipaddr.process(host)
  return ["loopback", "unspecified"].includes(address.range()) ? "localhost" : address.toString()
}

/** A path in one form: servers decode it, and most of them ignore empty parts. */
const pathOf = (pathname: string): string => {
  const decoded = pathname.replace(/%([0-9a-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16))
  )
  return decoded.split("/").filter(Boolean).join("/")
}

/**
 * The node that a URL leads to. Two URLs of one node count as one provider, unless they differ in port, path or query,
 * which may lead to another node.
 */
const nodeOf = (url: string): string => {
  const { hostname, pathname, port, searchParams } = new URL(url)
  const query = Array.from(searchParams, (each) => JSON.stringify(each)).sort()
  return `${hostOf(hostname)}:${port}/${pathOf(pathname)}?${query.join("&")}`
}

const hasNoNodeTwice = (urls: ReadonlyArray<Redacted.Redacted>) =>
  hasNoDuplicates(urls.map((url) => nodeOf(Redacted.value(url))))

/** An array whose items have their own messages. */
export const listOf = <A, I>(what: string, item: Schema.Schema<A, I>) =>
  Schema.Array(item)
    // The value is not shown: it may be an RPC URL without the brackets of an array.
    .annotations({ message: () => `must be an array of ${what}` })
    .pipe(Schema.filter(hasNoDuplicates, { message: () => "must not name the same one twice" }))
    .annotations({ description: `must be an array of ${what}` })

const units = { ms: "millis", s: "seconds", m: "minutes", h: "hours", d: "days", w: "weeks" } as const
const shortForm = /^(\d+(?:\.\d+)?)(ms|s|m|h|d|w)$/
const longForm = /^\d+(?:\.\d+)? (?:millis?|seconds?|minutes?|hours?|days?|weeks?)$/

/** `24h`, `30s`, `5m`, `7d`, `500ms`, or as Effect writes them: `60 seconds`. */
export const parseDuration = (text: string): Option.Option<Duration.Duration> => {
  const long = text.replace(shortForm, (_, amount: string, unit: keyof typeof units) => `${amount} ${units[unit]}`)
  return longForm.test(long) ? Duration.decodeUnknown(long) : Option.none()
}

/** A description of what `parseDuration` reads. */
const durationForm = 'a duration such as "30s", "24h" or "60 seconds"'

export const duration = (minimum: Duration.DurationInput, maximum: Duration.DurationInput) =>
  must(
    `${durationForm}, from ${Duration.format(minimum)} to ${Duration.format(maximum)}`,
    Schema.transformOrFail(Schema.String, Schema.DurationFromSelf, {
      strict: true,
      decode: (text, _, ast) =>
        Option.match(Option.filter(parseDuration(text), Duration.between({ minimum, maximum })), {
          onNone: () => ParseResult.fail(new ParseResult.Type(ast, text)),
          onSome: ParseResult.succeed
        }),
      encode: (value) => ParseResult.succeed(`${Duration.toMillis(value)} millis`)
    })
  )

const isUrl = (value: string, ...schemes: ReadonlyArray<string>) =>
  /^\S+$/.test(value) && URL.canParse(value) && schemes.includes(new URL(value).protocol)

// None of these is shown in messages: each may contain a password or a provider's key.
export const publicUrl = mustSecretly(
  "an http or https URL without user, query or fragment",
  converted((value) => {
    if (!isUrl(value, "http:", "https:")) return false
    const { hash, password, search, username } = new URL(value)
    return `${username}${password}${search}${hash}` === ""
  }, withoutTrailingSlash)
)

export const optionalUrl = mustSecretly(
  'an http or https URL, or "" for none',
  textThat((value) => value === "" || isUrl(value, "http:", "https:"))
)

/** The URL of a trusted source. HTTPS, so that its responses cannot be changed on the way. */
export const sourceUrl = mustSecretly(
  "an https URL without user, query or fragment; http only on this machine",
  converted((value) => {
    if (!isUrl(value, "http:", "https:")) return false
    const { hash, hostname, password, protocol, search, username } = new URL(value)
    return `${username}${password}${search}${hash}` === "" && (protocol === "https:" || loopback.test(hostname))
  }, withoutTrailingSlash)
)

const rpcUrl = mustSecretly(
  "an http or https URL",
  Schema.Redacted(textThat((value) => isUrl(value, "http:", "https:")))
)

/** URLs of nodes, at least one. */
export const nodeUrls = listOf("http or https URLs", rpcUrl).pipe(
  Schema.filter((urls) => urls.length > 0, { message: () => "must name at least one http or https URL" }),
  Schema.filter(hasNoNodeTwice, {
    message: () => "must not name the same node twice: two names of one node are no second provider"
  })
)

export const walletKey = mustSecretly(
  "the extended public key (xpub…) of an account, m/44'/60'/n': 111 characters, depth 3, with a valid checksum",
  Schema.Redacted(textThat((value) => walletIdentity(value) !== undefined))
)

const isCidr = (value: string) =>
  ipaddr.isValidCIDR(value) &&
  // ipaddr.js also accepts 127.1 and 0177.0.0.1, which other programs interpret differently.
  (value.includes(":") || ipaddr.IPv4.isValidFourPartDecimal(value.split("/")[0] ?? ""))

export const cidr = must('a CIDR block such as "10.0.0.0/8" or "127.0.0.1/32"', textThat(isCidr))

export const decimal = must(
  'a decimal in quotes, such as "0.10", or "0"',
  textThat((value) => /^(0|[1-9]\d{0,29})(\.\d{1,18})?$/.test(value))
)

export const positiveDecimalText = must(
  'a decimal above 0 in quotes, such as "2500" or "1.10"',
  textThat((value) => /^(0|[1-9]\d{0,29})(\.\d{1,18})?$/.test(value) && /[1-9]/.test(value))
)

export const contractAddress = must(
  "a contract's address: 0x and 40 hex digits, in lower case or with its EIP-55 checksum",
  converted(
    (value) => isAddress(value) && value !== zeroAddress,
    (value) => value.toLowerCase()
  )
)

/** An address that money is sent to, in EIP-55 form: a wrong digit is found. */
export const destinationAddress = must(
  "an address with its EIP-55 checksum, which a mistyped one fails: 0x and 40 hex digits in mixed case",
  textThat((value) => isAddress(value) && value === getAddress(value))
)

export const startBlock = must(
  '"latest" or a block number',
  Schema.Union(Schema.Literal("latest"), Schema.Int.pipe(Schema.nonNegative()))
)

const inSnakeCase = (key: string) => key.replace(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

type Fields = Readonly<Record<string, Schema.Schema.Any | Schema.PropertySignature.Any>>

/**
 * A section of the file. Its keys are in camel case here and in the settings, and in snake case in the file. The
 * decoder reports unknown and missing keys, and values that are not sections.
 */
export const section = <F extends Fields>(fields: F) =>
  Schema.make<Schema.Simplify<Schema.Struct.Type<F>>, unknown>(
    Schema.Struct(
      Record.map(fields, (field, key) =>
        Schema.fromKey(Schema.isPropertySignature(field) ? field : Schema.propertySignature(field), inSnakeCase(key))
      )
    ).ast
  )

/** An optional key. `value`: its default, as in the file. */
export const withDefault = <A, I>(schema: Schema.Schema<A, I>, value: I) =>
  Schema.optionalWith(schema, { exact: true, default: () => Schema.decodeSync(schema)(value) })

/** An optional section: none of its keys is required. */
export const withDefaults = <F extends Fields>(fields: F) => withDefault(section(fields), {})

/** An optional key, absent from the settings by default. */
export const optionalKey = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

/** An optional key, undefined in the settings by default. */
export const orUndefined = <A, I>(schema: Schema.Schema<A, I>) =>
  Schema.optionalToRequired(schema, Schema.UndefinedOr(Schema.typeSchema(schema)), {
    decode: Option.getOrUndefined,
    encode: Option.fromNullable
  })
