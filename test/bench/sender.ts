import { readFileSync } from "node:fs"
import { rootCertificates } from "node:tls"
import { Client } from "undici"

// The barest loop of the daemon's own HTTP client: so many requests at once over kept connections, and nothing stored,
// read, signed or checked.
const [, , caFile = "", ports = "", concurrency = "", count = "", bytes = ""] = process.argv

const ca = [...rootCertificates, readFileSync(caFile, "utf8")]
const origins = ports.split(",").map((port) => `https://127.0.0.1:${port}`)
const body = Buffer.alloc(Number(bytes), "x")
let begun = 0

const send = async (client: Client) => {
  while (begun < Number(count)) {
    const headers = { "content-type": "application/json", "webhook-id": `evt_${begun++}` }
    const answer = await client.request({ method: "POST", path: "/", headers, body })
    await answer.body.dump()
  }
  await client.close()
}

console.log(JSON.stringify("sending"))
await Promise.all(
  Array.from({ length: Number(concurrency) }, (_, i) =>
    send(new Client(origins[i % origins.length] ?? "", { connect: { ca } }))
  )
)
