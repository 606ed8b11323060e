/** What suites start of the system: for the tests themselves, and for what `npm test` prints. */
import { existsSync } from "node:fs"
import { delimiter, join } from "node:path"

/** Programs by the Debian package that has them. A machine that tests each change has these. */
const required = {
  bash: "bash",
  curl: "curl",
  openssl: "openssl",
  perl: "perl",
  python3: "python3",
  "systemd-analyze": "systemd",
  "systemd-notify": "systemd"
} as const

/** Compilers of languages that one snippet of the documentation each is in, and the proxies in front: run where they are. */
const welcome = { caddy: "caddy", go: "golang-go", nginx: "nginx", php: "php-cli" } as const

export const packages = { ...required, ...welcome }

export type Program = keyof typeof packages

/** Whether a program is on the path. */
export const isHere = (program: Program): boolean =>
  // @effect-diagnostics-next-line processEnv:off
  (process.env.PATH ?? "").split(delimiter).some((folder) => folder !== "" && existsSync(join(folder, program)))

/** Those that are missing here. */
export const missing = () => Object.keys(packages).filter((program) => !isHere(program as Program)) as Array<Program>

/** Whether a reason is one that no machine may have that tests each change. */
export const isOfRequired = (reason: string): boolean =>
  Object.keys(required).some((program) => reason === reasonOf(program as Program))

/** Why a test is left out: `npm test` lists these reasons, and takes any other one for a failure. */
export const reasonOf = (program: Program): string => `needs ${program}: apt-get install ${packages[program]}`
