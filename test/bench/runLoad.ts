import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { quantile } from "./Figure.ts"
import { startScript } from "./processes.ts"

export interface LoadRequest {
  readonly method: "GET" | "POST"
  readonly path: string
  readonly body?: string
}

/** What the load process is given. */
export interface Load {
  readonly apiKey: string
  readonly requests: ReadonlyArray<LoadRequest>
  /** Requests a second; without it each follows the answer to the one before. */
  readonly perSecond?: number
}

export interface Round {
  readonly perSecond: number
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
  /** Milliseconds of each; over one connection in the order of the requests. */
  readonly latencies: ReadonlyArray<number>
  /** The bodies of the answers, all of them 2xx. */
  readonly answers: ReadonlyArray<string>
}

interface Said {
  readonly latencies: ReadonlyArray<number>
  readonly seconds: number
  readonly acknowledged: number
  readonly refused: ReadonlyArray<string>
}

/** Sends the requests from a process of their own, over so many connections. Dies of an answer that is not a 2xx. */
export const runLoad = (folder: string, port: number, connections: number, load: Load) =>
  Effect.gen(function* () {
    const [loadFile, answersFile] = [join(folder, "load.json"), join(folder, "answers.json")]
    writeFileSync(loadFile, JSON.stringify(load))
    const { said } = yield* startScript<Said>("load.ts", [String(port), String(connections), loadFile, answersFile])
    if (said.refused.length > 0) return yield* Effect.dieMessage(`refused: ${said.refused.join("\n")}`)
    const round: Round = {
      perSecond: said.acknowledged / said.seconds,
      p50: quantile(said.latencies, 0.5),
      p99: quantile(said.latencies, 0.99),
      latencies: said.latencies,
      answers: JSON.parse(readFileSync(answersFile, "utf8"))
    }
    return round
  }).pipe(Effect.scoped)
