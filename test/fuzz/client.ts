import { connect, type Socket } from "node:net"

export interface Answer {
  readonly status: number
  /** By name in lower case. */
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string>>>
  readonly body: string
}

/** Milliseconds: nothing that the fuzz asks for takes this long. */
const patience = 30_000

const headersIn = (lines: ReadonlyArray<string>): Answer["headers"] => {
  const headers: Record<string, string | Array<string>> = {}
  for (const line of lines) {
    const at = line.indexOf(":")
    const [name, value] = [line.slice(0, at).toLowerCase(), line.slice(at + 1).trim()]
    const before = headers[name]
    headers[name] = before === undefined ? value : [before, value].flat()
  }
  return headers
}

/** The answer at the start of a text whose characters are bytes; undefined while it is not all there. */
const answerIn = (text: string, isHead: boolean): Answer | undefined => {
  const end = text.indexOf("\r\n\r\n")
  if (end === -1) return undefined
  const [start = "", ...lines] = text.slice(0, end).split("\r\n")
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(start)?.[1])
  // 100 Continue
  if (status < 200) return answerIn(text.slice(end + 4), isHead)
  const headers = headersIn(lines)
  const length = isHead || status === 304 ? 0 : Number(headers["content-length"])
  if (Number.isNaN(length)) throw new Error(`an answer without Content-Length: ${text.slice(0, 500)}`)
  if (text.length < end + 4 + length) return undefined
  const rest = text.slice(end + 4 + length)
  // What cannot be parsed is refused by a server that does not know what was asked: then HEAD has a body, and no successor.
  const isBlind = isHead && headers["connection"] === "close" && rest.length === Number(headers["content-length"])
  if (rest !== "" && !isBlind) throw new Error(`more than an answer: ${rest.slice(0, 500)}`)
  return { status, headers, body: Buffer.from(text.slice(end + 4), "latin1").toString("utf8") }
}

/** A client that sends bytes as they are, which no library would: one request at a time, on one connection as long as it lives. */
export class RawClient {
  readonly #port: number
  #socket: Socket | undefined

  constructor(port: number) {
    this.#port = port
  }

  async ask(request: Buffer, isHead: boolean): Promise<Answer> {
    const isNew = this.#socket === undefined
    const socket = this.#socket ?? connect(this.#port, "127.0.0.1").setNoDelay(true).setEncoding("latin1")
    this.#socket = socket
    const answer = await new Promise<Answer | undefined>((resolve, reject) => {
      let text = ""
      const onData = (chunk: string) => {
        text += chunk
        try {
          const answer = answerIn(text, isHead)
          if (answer !== undefined) done(() => resolve(answer))
        } catch (error) {
          done(() => reject(error))
        }
      }
      const onEnd = () => {
        this.#socket = undefined
        done(() =>
          text === "" && !isNew ? resolve(undefined) : reject(new Error(`closed after ${JSON.stringify(text)}`))
        )
      }
      const onTimeout = () =>
        done(() => reject(new Error(`no answer in ${patience} ms, after ${JSON.stringify(text)}`)))
      const done = (settle: () => void) => {
        socket.off("data", onData).off("close", onEnd).off("timeout", onTimeout)
        settle()
      }
      socket.on("error", () => undefined)
      socket.on("data", onData).on("close", onEnd).setTimeout(patience, onTimeout)
      socket.write(request)
    })
    socket.removeAllListeners("error").on("error", () => undefined)
    // The server was just closing it.
    if (answer === undefined) return this.ask(request, isHead)
    if (String(answer.headers["connection"]).toLowerCase() === "close") this.close()
    return answer
  }

  close(): void {
    this.#socket?.destroy()
    this.#socket = undefined
  }
}
