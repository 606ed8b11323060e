import { beforeEach } from "vitest"
import { isHere, type Program, reasonOf } from "./programs.ts"

/** The tests of this file, or of the `describe` around it, start programs of the system. Where one is missing they are skipped, and `npm test` says so. */
export const needs = (...programs: ReadonlyArray<Program>): void =>
  beforeEach(({ skip }) => {
    for (const program of programs) skip(!isHere(program), reasonOf(program))
  })
