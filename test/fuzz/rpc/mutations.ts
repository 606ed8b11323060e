import type { Dice } from "../../sim/Dice.ts"
import { oddTexts } from "../bySchema.ts"

/** Where a value is within another: names of members and places in arrays. */
export type Path = ReadonlyArray<string | number>

/** Objects with `__proto__` as a member of its own, as JSON.parse makes them. */
const object = (members: ReadonlyArray<readonly [string, unknown]>): object => Object.fromEntries(members)

/** Names that programs stumble over, and those of the protocol. */
const names = [
  "__proto__",
  "constructor",
  "toString",
  "valueOf",
  "toJSON",
  "then",
  "length",
  "",
  "\ud800",
  "id",
  "result",
  "error",
  "number",
  "hash",
  "logs",
  "topics",
  "transactions",
  "calls",
  "value",
  "to"
] as const

export const nested = (dice: Dice, depth: number, inner: unknown = 1): unknown => {
  let value = inner
  for (let i = 0; i < depth; i++) value = dice.chance(0.5) ? [value] : object([[dice.pick(names), value]])
  return value
}

const quantities = [
  "0x",
  "0x0",
  "0x00",
  "0x1",
  "-0x1",
  "0X1",
  "0x 1",
  "0x1g",
  "0x１",
  "1",
  "0x1fffffffffffff",
  "0x20000000000000",
  `0x${"f".repeat(64)}`,
  `0x${"f".repeat(65)}`,
  `0x${"0".repeat(64)}`,
  `0x${"9".repeat(5_000)}`
]

const numbers = [0, -0, -1, 1, 1.5, 1e21, 1e308, 5e-324, 2 ** 53, -(2 ** 53)]

/** A value made from nothing. */
export const anything = (dice: Dice, depth = 3): unknown => {
  const kind = dice.below(depth > 0 ? 10 : 7)
  if (kind === 0) return dice.pick<unknown>([true, false, {}, [], [[]], [null]])
  if (kind === 1) return null
  if (kind === 2) return dice.pick(numbers)
  if (kind === 3) return dice.pick(oddTexts)
  if (kind === 4) return dice.pick(quantities)
  if (kind < 7) return hexOf(dice, dice.pick([1, 2, 40, 64, 64, 128, 512]))
  if (kind === 7) return Array.from({ length: dice.below(4) }, () => anything(dice, depth - 1))
  return object(Array.from({ length: dice.below(6) }, () => [dice.pick(names), anything(dice, depth - 1)]))
}

export const hexOf = (dice: Dice, digits: number): string => {
  let text = "0x"
  while (text.length < digits + 2) text += dice.below(2 ** 32).toString(16)
  return text.slice(0, digits + 2)
}

/** Another text of the same kind: of as many digits, or nearly. */
const otherText = (dice: Dice, text: string): unknown =>
  dice.pick<() => unknown>([
    () => text.slice(0, -1),
    () => `${text}0`,
    () => text.toUpperCase(),
    () => text.slice(2),
    () => ` ${text}`,
    () => Number(text),
    () => dice.pick(quantities),
    () => `-${text}`,
    () => hexOf(dice, Math.max(1, text.length - 2)),
    () => {
      const at = 2 + dice.below(Math.max(1, text.length - 2))
      return `${text.slice(0, at)}${dice.pick(["0", "1", "f", "F", "g", "", "\u0000", "é"])}${text.slice(at + 1)}`
    }
  ])()

const otherArray = (dice: Dice, value: ReadonlyArray<unknown>): unknown => {
  const at = dice.below(Math.max(1, value.length))
  return dice.pick<() => unknown>([
    () => [],
    () => [...value, value[at] ?? null],
    () => value.toSpliced(at, 1),
    () => value.toReversed(),
    () => Array.from({ length: 1 + dice.below(300) }, () => value[at] ?? 0),
    () => ({ ...value })
  ])()
}

const otherObject = (dice: Dice, value: object): unknown => {
  const members = Object.entries(value)
  const at = dice.below(Math.max(1, members.length))
  return dice.pick<() => unknown>([
    () => object(members.toSpliced(at, 1)),
    () => object([...members, [dice.pick(names), anything(dice)]]),
    () => members,
    () => object(members.map(([name], i) => [name, members[(i + at) % members.length]?.[1]]))
  ])()
}

/** Something else in a value's place: of its kind, of another, or the value in too deep a nest. */
const other = (dice: Dice, value: unknown): unknown => {
  if (dice.chance(0.45)) return dice.chance(0.1) ? nested(dice, dice.pick([2, 12, 14, 15, 40]), value) : anything(dice)
  if (typeof value === "string") return otherText(dice, value)
  if (Array.isArray(value)) return otherArray(dice, value)
  if (typeof value === "object" && value !== null) return otherObject(dice, value)
  return anything(dice)
}

/** A way down from the top of a value, to any depth. */
const pathIn = (dice: Dice, value: unknown): Path => {
  const path: Array<string | number> = []
  let at = value
  while (typeof at === "object" && at !== null) {
    const keys = Object.keys(at)
    if (keys.length === 0 || dice.chance(path.length < 3 ? 0.05 : 0.2)) break
    const key = dice.pick(keys)
    path.push(Array.isArray(at) ? Number(key) : key)
    at = (at as Record<string, unknown>)[key]
  }
  return path
}

/** The value with another one at a place. */
export const replaced = (value: unknown, [key, ...rest]: Path, by: (old: unknown) => unknown): unknown => {
  if (key === undefined) return by(value)
  if (Array.isArray(value)) return value.map((one, i) => (i === key ? replaced(one, rest, by) : one))
  return object(
    Object.entries(value as object).map(([name, one]) => [name, name === key ? replaced(one, rest, by) : one])
  )
}

/** The value, with something in it that does not belong. */
export const mutated = (dice: Dice, value: unknown): unknown =>
  replaced(value, pathIn(dice, value), (old) => other(dice, old))
