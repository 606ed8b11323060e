import { spawnSync } from "node:child_process"

/**
 * The seed of what tests draw at random: that of the tree, so that each change is tried with others, and what passed once passes
 * again. `TEST_SEED` names another one.
 */
export const treeSeed = (): number => {
  const { TEST_SEED } = process.env
  const { stdout } = spawnSync("git", ["rev-parse", "HEAD^{tree}"], { encoding: "utf8" })
  return Number(TEST_SEED ?? (Number.parseInt(stdout?.slice(0, 7) ?? "", 16) || 1))
}
