import packageJson from "../../../package.json" with { type: "json" }

/** The headers of every webhook request, except the signature. */
export const requestHeaders = {
  "content-type": "application/json",
  "user-agent": `tilld/${packageJson.version}`,
  // No compression: a small response must not decompress into a large one.
  "accept-encoding": "identity"
}
