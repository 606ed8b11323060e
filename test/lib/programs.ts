/** What suites start of the system: for the tests themselves, and for what `npm test` prints. */
import { existsSync } from "node:fs"
import { delimiter, join } from "node:path"

/** Programs by the package of Debian that has them. */
export const packages = {
  bash: "bash",
  curl: "curl",
  go: "golang-go",
  openssl: "openssl",
  perl: "perl",
  php: "php-cli",
  python3: "python3",
  "systemd-analyze": "systemd",
  "systemd-notify": "systemd"
} as const

export type Program = keyof typeof packages

/** Whether a program is on the path. */
export const isHere = (program: Program): boolean =>
  (process.env.PATH ?? "").split(delimiter).some((folder) => folder !== "" && existsSync(join(folder, program)))

/** Those that are missing here. */
export const missing = () => Object.keys(packages).filter((program) => !isHere(program as Program)) as Array<Program>

/** Why a test is left out: `npm test` lists these reasons, and takes any other one for a failure. */
export const reasonOf = (program: Program): string => `needs ${program}: apt-get install ${packages[program]}`
