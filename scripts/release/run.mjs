import { spawnSync } from "node:child_process"

/** Ends the release with what is wrong, and what to do. */
export const fail = (message) => {
  console.error(`release: ${message}`)
  process.exit(1)
}

/** What the command prints; ends the release where it fails. */
export const run = (command, args, options = {}) => {
  const { error, status, stderr, stdout } = spawnSync(command, args, {
    encoding: "utf8",
    maxBuffer: 2 ** 28,
    ...options,
    env: { ...process.env, LC_ALL: "C", ...options.env }
  })
  if (error !== undefined) fail(`${command} does not run (${error.message}): a release is made on Debian or Ubuntu`)
  if (status !== 0) fail(`${command} ${args.join(" ")} ended with ${status}:\n${(stderr || stdout).slice(-4_000)}`)
  return stdout
}
