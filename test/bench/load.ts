import { readFileSync, writeFileSync } from "node:fs"
import { connect } from "node:net"
import type { Load } from "./runLoad.ts"

// @effect-diagnostics globalTimers:off
// The load of one round, in a separate process: so many connections, each of which sends its next request when it has
// the answer to the one before, and not before its turn where there is a pace. A client of its own, since every library
// takes more processor time than some answers.
const [, , port = "", connections = "", loadFile = "", answersFile = ""] = process.argv

const { apiKey, perSecond, requests } = JSON.parse(readFileSync(loadFile, "utf8")) as Load
const texts = requests.map(({ body, method, path }) => {
  const content =
    body === undefined ? "" : `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n`
  return `${method} ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: ${apiKey}\r\n${content}\r\n${body ?? ""}`
})

const latencies: Array<number> = []
const answers: Array<string> = []
const refused: Array<string> = []
let next = 0

const client = () =>
  new Promise<void>((resolve, reject) => {
    // A character is a byte, so that lengths can be compared.
    const socket = connect(Number(port), "127.0.0.1").setNoDelay(true).setEncoding("latin1")
    let received = ""
    let sentAt = 0
    const write = (text: string) => {
      sentAt = performance.now()
      socket.write(text)
    }
    const send = () => {
      const turn = perSecond === undefined ? 0 : started + (next * 1000) / perSecond
      const text = texts[next++]
      if (text === undefined) {
        socket.end()
        return resolve()
      }
      const early = turn - performance.now()
      if (early > 0) setTimeout(write, early, text)
      else write(text)
    }
    socket.on("data", (chunk: string) => {
      received += chunk
      const head = received.indexOf("\r\n\r\n")
      if (head === -1) return
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(received)?.[1])
      if (received.length < head + 4 + length) return
      latencies.push(performance.now() - sentAt)
      if (received.startsWith("HTTP/1.1 2")) answers.push(received.slice(head + 4))
      else refused.push(received)
      received = ""
      send()
    })
    socket.once("connect", send).once("error", reject)
  })

const started = performance.now()
await Promise.all(Array.from({ length: Number(connections) }, client))
const seconds = (performance.now() - started) / 1000
writeFileSync(answersFile, JSON.stringify(answers))
console.log(JSON.stringify({ latencies, seconds, acknowledged: answers.length, refused: refused.slice(0, 3) }))
