import type { Dice } from "../../sim/Dice.ts"
import { anything } from "./mutations.ts"

/** One member of a batch's answer. */
export interface Answered {
  readonly id: unknown
  readonly result?: unknown
  readonly error?: unknown
}

const ids = [null, "0", "1", -1, 0, 1, 1.5, 99, 1e21, true, [0], { toString: 1 }, "__proto__", "length"]

/** Messages of nodes and companies, with numbers that none of them uses. */
const words = [
  "execution reverted",
  "method not found",
  "header not found",
  "missing trie node",
  "rate limit exceeded",
  "response too large",
  "query returned more than 10000 results",
  "block range is too large, max is 0 blocks",
  "eth_getLogs is limited to a 99999999999999999999 block range",
  "logs are limited to a 1 block range",
  "Try with this block range [0xffffffffffffffffffff, 0x0].",
  "this block range should work: [0x5, 0x3]",
  "retry with the range 7-7",
  "batch of more than 0 requests is not allowed",
  "batch of more than 2 requests is not allowed",
  "batch limit 999999999999999999999999 exceeded",
  "pruned history unavailable",
  "too many arguments, want at most 2",
  "\u0000\u202e\u001b[31m",
  "a".repeat(3_000)
]
const codes = [-32_700, -32_601, -32_600, -32_005, -32_004, -32_000, 3, 429, 0, 1e21, "-32000", null, {}, 1.5]

export const errorOf = (dice: Dice): unknown => {
  if (dice.chance(0.15)) return anything(dice)
  return {
    code: dice.pick<unknown>(codes),
    message: dice.chance(0.1) ? anything(dice) : dice.pick(words),
    ...(dice.chance(0.3) ? { data: dice.chance(0.5) ? anything(dice) : dice.pick(words) } : {})
  }
}

/** A batch's answer in which no member is wrong in itself, but whose it is. */
export const misaddressed = (dice: Dice, answers: ReadonlyArray<Answered>): unknown => {
  const at = dice.below(Math.max(1, answers.length))
  const one = answers[at]
  if (one === undefined) return anything(dice)
  return dice.pick<() => unknown>([
    () => [...answers, one],
    () => answers.toSpliced(at, 1),
    () => answers.with(at, { ...one, id: dice.pick<unknown>(ids) }),
    () => answers.with(at, { id: one.id, error: errorOf(dice) }),
    () => answers.with(at, { ...one, error: errorOf(dice) }),
    () => ({ id: dice.pick<unknown>(ids), error: errorOf(dice) }),
    () => one,
    () => [answers],
    () => answers.map(({ id, ...rest }) => ({ ...rest, id: String(id) })),
    () => answers.with(at, { id: one.id }),
    // The answers of a batch in another order, which is allowed; or exchanged, which is not.
    () =>
      dice.chance(0.5)
        ? answers.toReversed()
        : answers.map(({ result }, i) => ({ id: answers.length - 1 - i, result })),
    () => [...answers, { id: dice.pick<unknown>(ids), error: errorOf(dice) }],
    () => [...answers, ...Array.from({ length: 200 }, (_, i) => ({ id: 100 + i, result: null }))],
    () => answers.map(({ id }) => ({ id, error: errorOf(dice) }))
  ])()
}
