import { request } from "undici"
import { type Call, provider } from "../Chains/httpNode.ts"

export interface Asked extends Call {
  readonly params: ReadonlyArray<unknown>
}

/** What is done with each call and the node's result, before that goes back: it may be another one. */
export type Edit = (call: Asked, result: unknown) => unknown

const passOn = async (url: string, calls: ReadonlyArray<Asked>, edit: Edit): Promise<string> => {
  const headers = { "content-type": "application/json" }
  const reply = await request(url, { method: "POST", headers, body: JSON.stringify(calls) })
  const answers = (await reply.body.json()) as ReadonlyArray<{ readonly id: number; readonly result?: unknown }>
  const edited = answers.map(async (answer) => {
    const call = calls.find(({ id }) => id === answer.id)
    return call !== undefined && "result" in answer ? { ...answer, result: await edit(call, answer.result) } : answer
  })
  return JSON.stringify(await Promise.all(edited))
}

/** A provider in front of a node. */
export const inFrontOf = (url: string, edit: Edit) =>
  provider((calls, response) => {
    const done = passOn(url, calls as ReadonlyArray<Asked>, edit)
    void done.then(
      (text) => response.setHeader("content-type", "application/json").end(text),
      // The node has ended with its test.
      () => response.destroy()
    )
  })
