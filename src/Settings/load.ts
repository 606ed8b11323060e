import { X509Certificate } from "node:crypto"
import { readFileSync } from "node:fs"
import { hostname } from "node:os"
import { dirname, join, resolve } from "node:path"
import { Effect, Either, ParseResult, Schema, SchemaAST } from "effect"
import { chainNames, chainTraits, modes, type Network, networkKey } from "../Domain/Chain.ts"
import { decimalsOf, Erc20, standardFiat, tokenChains, tokensOn } from "../Domain/Currency.ts"
import { closest } from "../lib/suggestion.ts"
import { type ChainSettings, defaultDatabase, defaultNodeFolder, File, type SettingsShape } from "./configSchema.ts"
import {
  keysOf,
  nodeAt,
  type Override,
  parseText,
  readOverrides,
  readText,
  type SettingsSource,
  treeOf
} from "./configSource.ts"
import { at, isTree, merge, only, type Path, pathText, type Tree, texts } from "./configTree.ts"
import { needsRestart, valuesOf } from "./configuredValues.ts"
import { walletIdentity } from "./hdWallet.ts"
import { isBeside, markFolderOf } from "./indexMarkFolder.ts"
import { keyInText, keyInValue } from "./keyMaterial.ts"
import { knownBlocks } from "./knownBlocks.ts"
import { type Preset, presets } from "./publicNetworks.ts"
import { type Fault, SettingsInvalid, type SettingsProblem } from "./SettingsProblem.ts"
import { show } from "./valueSchemas.ts"

/** All combinations of chain and mode. */
const networks: ReadonlyArray<Network> = chainNames.flatMap((chain) => modes.map((mode) => ({ chain, mode })))

/** The preset of a network: for a chain without a chain id, or with the public network's. */
const presetOf = ({ chain, mode }: Network, chainId: unknown): Preset | undefined => {
  const preset = presets[mode][chain]
  return chainId === undefined || chainId === preset.chainId ? preset : undefined
}

const presetKeys = ({ chain }: Network, preset: Preset): Tree => ({
  chain_id: preset.chainId,
  confirmations: chainTraits[chain].confirmations,
  poll_interval: chainTraits[chain].pollInterval,
  tokens: Object.fromEntries(
    Erc20.literals.flatMap((symbol) => {
      const address = preset.tokens[symbol]
      return address === undefined ? [] : [[symbol, { address, decimals: decimalsOf[symbol] }]]
    })
  )
})

/** Fills in the presets of public networks, and the one section that has a required key. */
const withPresets = (given: Tree): Tree => {
  const chains = networks.flatMap((network) => {
    const path = ["chains", network.chain, network.mode]
    const settings = at(given, path)
    const preset = isTree(settings) ? presetOf(network, settings.chain_id) : undefined
    return preset === undefined ? [] : [only(path, presetKeys(network, preset))]
  })
  return [...chains, given].reduce(merge, { server: {} })
}

/** The absolute path of the folder that a key's relative path is resolved from. */
type BaseOf = (key: Path) => string

const chainOf = (file: File, network: Network): ReadonlyArray<ChainSettings> => {
  const section = file.chains[network.chain]?.[network.mode]
  if (section === undefined) return []
  const { policy, tokens, ...chain } = section
  const preset = presetOf(network, chain.chainId)
  return [
    {
      ...network,
      ...chain,
      tokens: Erc20.literals.flatMap((symbol) => {
        const token = tokens[symbol]
        return token === undefined ? [] : [{ symbol, ...token }]
      }),
      wrongTokens: Object.entries(preset?.wrongTokens ?? {}).map(([name, address]) => ({
        name,
        address: address.toLowerCase()
      })),
      policies: policy,
      knownBlocks: preset === undefined ? [] : (knownBlocks[preset.chainId] ?? [])
    }
  ]
}

/** The settings: the decoded file with absolute paths, and its chains as a list. */
const shapeOf = (file: File, base: BaseOf, source: SettingsSource): SettingsShape => {
  const { env } = source
  const { checkout, control, database, node, rates, webhooks } = file
  const absolute = (key: Path, path: string): string => (path === "" ? "" : resolve(base(key), path))
  const folder = absolute(["node", "folder"], node.folder)
  const path = database.engine === "postgres" ? join(folder, "tilld.db") : absolute(["database", "path"], database.path)
  return {
    ...file,
    node: { name: node.name || hostname(), folder },
    database: {
      path,
      markFolder: absolute(["database", "mark_folder"], database.markFolder) || markFolderOf(path, env)
    },
    postgres:
      database.engine === "postgres"
        ? {
            ...database,
            passwordFile: absolute(["database", "password_file"], database.passwordFile),
            rootCertificate: absolute(["database", "root_certificate"], database.rootCertificate)
          }
        : undefined,
    control: { readSocket: absolute(["control", "read_socket"], control.readSocket) },
    checkout: { logoFolder: absolute(["checkout", "logo_folder"], checkout.logoFolder) },
    rates: { ...rates, currencies: [...new Set([...standardFiat, ...rates.currencies])] },
    webhooks: { ...webhooks, extraCaFile: absolute(["webhooks", "extra_ca_file"], webhooks.extraCaFile) },
    chains: networks.flatMap((network) => chainOf(file, network)),
    values: valuesOf(encoded(file) as Tree),
    again: load(source)
  }
}

/** Checks across keys. `tree` has the presets of its chains and is not decoded, so that these problems are shown with all others. */
const check = (tree: Tree): ReadonlyArray<Fault> => {
  const chains = networks.flatMap((network) => {
    const settings = at(tree, pathOf(network))
    return isTree(settings) ? [{ network, settings }] : []
  })
  return [
    ...(chains.length > 0 ? [] : [{ path: ["chains"], message: "must name a chain, such as [chains.ethereum.test]" }]),
    ...walletFaults(tree, chains),
    ...chainIdFaults(chains),
    ...chains.flatMap(tokenFaults),
    ...rateFaults(tree),
    ...portFaults(tree),
    ...engineFaults(tree)
  ]
}

const onlyPostgres = ["url", "password_file", "root_certificate", "schema", "pool"]

/** Keys of the engine that is not used would be believed to do something. */
const engineFaults = (tree: Tree): ReadonlyArray<Fault> => {
  const given = (key: string) => at(tree, ["database", key])
  if (given("engine") === "postgres") {
    return [
      ...(given("path") === undefined
        ? []
        : [{ path: ["database", "path"], message: "is of SQLite: remove it; node.folder has this node's own files" }]),
      ...(given("url") ? [] : [{ path: ["database", "url"], message: "must name the PostgreSQL that has the data" }])
    ]
  }
  return onlyPostgres
    .filter((key) => given(key) !== undefined && given(key) !== "")
    .map((key) => ({
      path: ["database", key],
      message: 'is of PostgreSQL: set database.engine = "postgres", or remove it'
    }))
}

interface Chain {
  readonly network: Network
  readonly settings: Tree
}

const pathOf = ({ chain, mode }: Network) => ["chains", chain, mode]

const walletFaults = (tree: Tree, chains: ReadonlyArray<Chain>): ReadonlyArray<Fault> => {
  const missing = (["live", "test"] as const).flatMap((mode) => {
    const needs = chains.find(({ network }) => network.mode === mode)
    if (needs === undefined || at(tree, ["wallets", mode]) !== undefined) return []
    const message = `is missing: [chains.${networkKey(needs.network)}] needs an extended public key (xpub…) to make addresses from`
    return [{ path: ["wallets", mode], message }]
  })
  const identities = ["live", "test"].map((mode) => {
    const key = at(tree, ["wallets", mode])
    return typeof key === "string" ? walletIdentity(key) : undefined
  })
  const same = identities[0] !== undefined && identities[0] === identities[1]
  const message =
    "is the wallet of wallets.live too, and test payments must never share addresses with live ones; use another account's key"
  return same ? [...missing, { path: ["wallets", "test"], message }] : missing
}

/** Finds chain ids that belong to another network: a public one, or one earlier in this file. */
const chainIdFaults = (chains: ReadonlyArray<Chain>): ReadonlyArray<Fault> => {
  const owners = new Map(networks.map((network) => [presets[network.mode][network.chain].chainId, network]))
  return chains.flatMap(({ network, settings }) => {
    const id = settings.chain_id
    if (typeof id !== "number") return []
    const owner = owners.get(id) ?? network
    owners.set(id, owner)
    if (networkKey(owner) === networkKey(network)) return []
    return [{ path: [...pathOf(network), "chain_id"], message: `${id} is the chain of chains.${networkKey(owner)}` }]
  })
}

const tokenFaults = ({ network, settings }: Chain): ReadonlyArray<Fault> => {
  const owners = new Map<string, Erc20>()
  return Erc20.literals.flatMap((symbol) => {
    const path = [...pathOf(network), "tokens", symbol]
    if (at(settings, ["tokens", symbol]) === undefined) return []
    if (!tokenChains[symbol].includes(network.chain)) {
      const taken = tokensOn(network.chain).join(", ")
      return [{ path, message: `is not taken on ${network.chain}, which takes ${taken}; remove this section` }]
    }
    const address = at(settings, ["tokens", symbol, "address"])
    if (typeof address !== "string") return []
    const owner = owners.get(address.toLowerCase()) ?? symbol
    owners.set(address.toLowerCase(), owner)
    return owner === symbol ? [] : [{ path: [...path, "address"], message: `is the contract of ${owner} too` }]
  })
}

const everywhere = ["0.0.0.0", "::"]

/** The operator's listener and the API's cannot both have one port, unless each has an address of its own. */
const portFaults = (tree: Tree): ReadonlyArray<Fault> => {
  if (at(tree, ["admin"]) === undefined) return []
  const [server, admin] = [
    { host: at(tree, ["server", "host"]) ?? "127.0.0.1", port: at(tree, ["server", "port"]) ?? 8080 },
    { host: at(tree, ["admin", "host"]) ?? "127.0.0.1", port: at(tree, ["admin", "port"]) ?? 9090 }
  ]
  const overlap =
    server.host === admin.host || [server.host, admin.host].some((host) => everywhere.includes(String(host)))
  if (server.port !== admin.port || server.port === 0 || !overlap) return []
  return [{ path: ["admin", "port"], message: `is ${admin.port}, which is server.port too; choose another` }]
}

const rateFaults = (tree: Tree): ReadonlyArray<Fault> => {
  const sources = at(tree, ["rates", "sources"])
  const fixed = at(tree, ["rates", "fixed"]) ?? {}
  const priceless =
    Array.isArray(sources) && sources.includes("fixed") && isTree(fixed) && Object.keys(fixed).length === 0
  return priceless ? [{ path: ["rates", "fixed"], message: 'must hold prices in USD where the source is "fixed"' }] : []
}

const decoded = Schema.decodeUnknownEither(File, { errors: "all", onExcessProperty: "error" })
const encoded = Schema.encodeSync(File)

const unknownKey = (path: Path): string => {
  const section = path.slice(0, -1)
  const key = String(path.at(-1))
  const known = keysOf(nodeAt(section))
  const meant = closest(key, known)
  if (meant !== undefined) return `is not a key of tilld; did you mean "${meant}"?`
  if (section.at(-1) === "tokens" && (key === "ETH" || key === "MATIC")) {
    return "is the chain's own coin, which has no contract and needs no configuration; remove this section"
  }
  return `is not a key of tilld; ${section.length === 0 ? "the file" : `[${pathText(section)}]`} takes ${known.join(", ")}`
}

const missingKey = (path: Path): string => {
  const node = nodeAt(path)
  const rule = node === undefined ? undefined : SchemaAST.getDescriptionAnnotation(node)
  const needed = rule?._tag === "Some" ? `is missing; it ${rule.value}` : "is missing"
  return path[0] === "chains" && path.length > 3 && !path.includes("policy")
    ? `${needed} (only public networks have presets)`
    : needed
}

const messageOf = ({ _tag, message, path }: ParseResult.ArrayFormatterIssue, tree: Tree): string => {
  if (_tag === "Unexpected") return unknownKey(path)
  if (_tag === "Missing") return missingKey(path)
  return keysOf(nodeAt(path)).length === 0 ? message : `must be a section; found ${show(at(tree, path))}`
}

/** Decodes `tree`, which has the presets of its chains. Fails with all problems, one per key. */
const decode = (tree: Tree): Either.Either<File, ReadonlyArray<Fault>> =>
  Either.mapLeft(decoded(tree), (error) => {
    const faults = new Map<string, Fault>()
    for (const issue of ParseResult.ArrayFormatter.formatErrorSync(error)) {
      const place = pathText(issue.path)
      if (!faults.has(place)) faults.set(place, { path: issue.path, message: messageOf(issue, tree) })
    }
    return [...faults.values()]
  })

const keyMessage = (what: string) =>
  `holds what looks like ${what}, which is not shown here. tilld needs none and must never have one: remove it, ` +
  "treat what it guards as exposed, and give the extended public key (xpub…) of a new seed's account instead"

const isUnder = (path: Path, root: Path) => root.every((key, i) => path[i] === key)

/** Lists each place once. A private key comes first: other problems of the same value do not matter then. */
const problemsOf = (
  faults: ReadonlyArray<Fault>,
  overrides: ReadonlyArray<Override>
): ReadonlyArray<SettingsProblem> => {
  const problems = new Map<string, SettingsProblem>()
  for (const { path, message } of faults) {
    const variable = overrides.find((override) => isUnder(path, override.path))?.variable
    const place = variable ?? pathText(path)
    if (!problems.has(place)) problems.set(place, { at: place, message })
  }
  return [...problems.values()]
}

const keyFaults = (tree: Tree): ReadonlyArray<Fault> =>
  texts(tree).flatMap(([path, text]) => {
    const what = keyInValue(text)
    return what === undefined ? [] : [{ path, message: keyMessage(what) }]
  })

/**
 * The folder that a relative path is resolved from: for a value of the configuration file the folder of that file, for
 * one of an environment variable the folder that tilld is started in, as for `--config`.
 */
const baseOf =
  (file: string, overrides: ReadonlyArray<Override>): BaseOf =>
  (key) =>
    overrides.some((override) => isUnder(key, override.path)) ? resolve() : resolve(dirname(file))

/** The certificates in a PEM text, unread. */
export const certificatesIn = (pem: string): ReadonlyArray<string> =>
  pem.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? []

/** Whether receivers can be trusted by a certificate: it is an authority's, or a receiver's that has signed itself. */
const isAuthority = (text: string): boolean => {
  const certificate = new X509Certificate(text)
  return certificate.ca || certificate.checkIssued(certificate)
}

const caFaults = (tree: Tree, base: BaseOf): ReadonlyArray<Fault> => {
  const path = ["webhooks", "extra_ca_file"]
  const file = at(tree, path)
  if (typeof file !== "string" || file === "") return []
  const folder = base(path)
  const of = (what: string) => [{ path, message: `names a file ${what}; give a PEM file with the extra certificates` }]
  const text = Either.try(() => readFileSync(resolve(folder, file), "utf8"))
  if (Either.isLeft(text)) return of(`that cannot be read, seen from ${folder}`)
  const found = certificatesIn(text.right)
  if (found.length === 0) return of("without a certificate in PEM")
  const areTrusted = Either.try(() => found.every(isAuthority))
  if (Either.isLeft(areTrusted)) return of("with a certificate that cannot be decoded")
  return areTrusted.right
    ? []
    : of("with a certificate of a server, which is no authority: the one that signed it is needed")
}

/** Paths that must not be in the folder of the database, with the reason. */
const apart: ReadonlyArray<Fault> = [
  {
    path: ["database", "mark_folder"],
    message:
      "is in the folder of the database: a restored copy of that folder would include the mark; give one elsewhere"
  },
  {
    path: ["control", "read_socket"],
    message: "is in the folder of the database, which its group must not enter; give one in a folder of its own"
  }
]

const apartFaults = (tree: Tree, base: BaseOf): ReadonlyArray<Fault> => {
  const isFile = at(tree, ["database", "engine"]) !== "postgres"
  const key = isFile ? ["database", "path"] : ["node", "folder"]
  const given = at(tree, key) ?? (isFile ? defaultDatabase : defaultNodeFolder)
  const database = resolve(base(key), isFile ? String(given) : join(String(given), "tilld.db"))
  return apart.filter(({ path }) => {
    const given = at(tree, path)
    return typeof given === "string" && given !== "" && isBeside(database, resolve(base(path), given))
  })
}

const assess = (source: SettingsSource): Either.Either<SettingsShape, ReadonlyArray<SettingsProblem>> => {
  const { env, path } = source
  const { overrides, problems: unknown } = readOverrides(env)
  const text = readText(path)
  const tree = Either.flatMap(text, parseText)
  // Comments are searched, too: a private key in a comment is still on the server.
  const inText = Either.match(text, { onLeft: () => undefined, onRight: keyInText })
  const atLine = inText === undefined ? [] : [{ at: `line ${inText.line}`, message: keyMessage(inText.what) }]
  if (Either.isLeft(tree)) return Either.left([...atLine, { at: path, message: tree.left }, ...unknown])

  const given = merge(tree.right, treeOf(overrides))
  const full = withPresets(given)
  const base = baseOf(path, overrides)
  const file = decode(full)
  const keys = keyFaults(given)
  const faults = [
    ...keys,
    ...Either.match(file, { onLeft: (all) => all, onRight: () => [] }),
    ...check(full),
    ...caFaults(full, base),
    ...apartFaults(full, base)
  ]
  const problems = [...(keys.length === 0 ? atLine : []), ...unknown, ...problemsOf(faults, overrides)]
  return Either.isRight(file) && problems.length === 0
    ? Either.right(shapeOf(file.right, base, source))
    : Either.left(problems)
}

/** What a daemon that runs with `current` takes of `next` without a restart. */
export const takenBy = (current: SettingsShape, next: SettingsShape): SettingsShape => {
  const { host, port, trustedProxies } = current.server
  const kept = (of: SettingsShape, isOf: boolean) =>
    Object.fromEntries(Object.entries(of.values).filter(([key]) => needsRestart(key) === isOf))
  return {
    ...next,
    server: { ...next.server, host, port, trustedProxies },
    ...{ admin: current.admin, database: current.database, postgres: current.postgres, node: current.node },
    values: { ...kept(next, false), ...kept(current, true) }
  }
}

/** Loads the configuration. Fails with all its problems at once. */
export const load = (source: SettingsSource): Effect.Effect<SettingsShape, SettingsInvalid> =>
  Effect.suspend(() =>
    Either.mapLeft(assess(source), (problems) => new SettingsInvalid({ file: source.path, problems }))
  ).pipe(Effect.withSpan("Settings.load"))
