import { Redacted } from "effect"
import type { ChainSettings } from "../Settings.ts"

/** The port of a local chain, one at http://127.0.0.1:PORT; undefined for any other. */
export const localPort = ({ rpcUrls: [url] }: ChainSettings): number | undefined => {
  const { hostname, port } = new URL(url === undefined ? "http://none" : Redacted.value(url))
  return hostname === "127.0.0.1" && port !== "" ? Number(port) : undefined
}
