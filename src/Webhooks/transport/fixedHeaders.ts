import packageJson from "../../../package.json" with { type: "json" }

/** What every webhook request carries besides its signature. */
export const fixedHeaders = {
  "content-type": "application/json",
  "user-agent": `tilld/${packageJson.version}`,
  // Nothing to unpack: a small answer that unpacks into a large one stays small.
  "accept-encoding": "identity"
}
