import { Schema } from "effect"
import { must } from "./annotations.ts"

export const maxUrlLength = 2048

/** The parts of an absolute URL without user info and invisible characters, at most 2,048 characters long. */
export const parseUrl = (text: string): URL | undefined => {
  if (text.length > maxUrlLength || /[\s\p{C}]/u.test(text) || !URL.canParse(text)) return undefined
  const url = new URL(text)
  return url.username === "" && url.password === "" ? url : undefined
}

/** A well-formed https URL. The target guard decides whether tilld may call it. */
export const HttpsUrl = must(
  `be an https URL of at most ${maxUrlLength} characters, without user info`,
  Schema.String.pipe(Schema.filter((text) => parseUrl(text)?.protocol === "https:")),
  // Its host and path may be a secret of the receiver.
  { json: { format: "uri", maxLength: maxUrlLength }, log: "hidden" }
)
