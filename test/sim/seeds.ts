/** The command line's options for the seeds, their stories and the requirements. */
export type SeedOptions = Readonly<
  Partial<Record<"seed" | "seeds" | "only" | "without" | "with" | "strict" | "engine", string>>
>

const numberOf = (name: string, text: string | undefined, otherwise: number): number => {
  if (text !== undefined && !/^[1-9][0-9]{0,8}$/.test(text)) throw new Error(`--${name} takes a number above 0`)
  return Number(text ?? otherwise)
}

/** The first seed and how many are played. `fresh`: the first one where none is named. */
export const seedsOf = ({ seed, seeds }: SeedOptions, fresh: number) => ({
  first: numberOf("seed", seed, fresh),
  count: numberOf("seeds", seeds, seed === undefined ? 40 : 1)
})

/** How many processes play. */
export const jobsOf = (jobs: string | undefined, otherwise: number): number => numberOf("jobs", jobs, otherwise)

/** The command that plays a seed again: what else the command line says decides what the seed does. */
export const repeatOf = (seed: number, options: SeedOptions): string => {
  const names = ["only", "without", "with", "strict", "engine"] as const
  const others = names.flatMap((name) => (options[name] === undefined ? [] : [` --${name} ${options[name]}`]))
  return `npm run sim -- --seed ${seed}${others.join("")}`
}
