import { accessSync, constants } from "node:fs"
import { dirname, resolve } from "node:path"
import { Effect, Either } from "effect"
import { check } from "./checks.ts"
import { defaultDatabase, type SettingsShape } from "./configSchema.ts"
import { type Override, parseText, readOverrides, readText, type SettingsSource, treeOf } from "./configSource.ts"
import { at, merge, type Path, pathText, type Tree, texts } from "./configTree.ts"
import { decode } from "./decode.ts"
import { isBeside } from "./indexMarkFolder.ts"
import { keyInText, keyInValue } from "./keyMaterial.ts"
import { type Fault, SettingsInvalid, type SettingsProblem } from "./SettingsProblem.ts"
import { type BaseOf, shapeOf, withPresets } from "./toSettings.ts"

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

const caFaults = (tree: Tree, base: BaseOf): ReadonlyArray<Fault> => {
  const path = ["webhooks", "extra_ca_file"]
  const file = at(tree, path)
  if (typeof file !== "string" || file === "") return []
  const folder = base(path)
  return Either.match(
    Either.try(() => accessSync(resolve(folder, file), constants.R_OK)),
    {
      onLeft: () => [
        {
          path,
          message: `names a file that cannot be read, seen from ${folder}; give a PEM file with the extra certificates`
        }
      ],
      onRight: () => []
    }
  )
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
  const key = ["database", "path"]
  const database = resolve(base(key), String(at(tree, key) ?? defaultDatabase))
  return apart.filter(({ path }) => {
    const given = at(tree, path)
    return typeof given === "string" && given !== "" && isBeside(database, resolve(base(path), given))
  })
}

const assess = ({ env, path }: SettingsSource): Either.Either<SettingsShape, ReadonlyArray<SettingsProblem>> => {
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
    ? Either.right(shapeOf(file.right, base, env))
    : Either.left(problems)
}

/** Loads the configuration. Fails with all its problems at once. */
export const load = (source: SettingsSource): Effect.Effect<SettingsShape, SettingsInvalid> =>
  Effect.suspend(() =>
    Either.mapLeft(assess(source), (problems) => new SettingsInvalid({ file: source.path, problems }))
  ).pipe(Effect.withSpan("Settings.load"))
