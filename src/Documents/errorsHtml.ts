import { type ErrorCode, errorCodes, statusOf } from "../Domain/ApiError.ts"
import { exampleError, meanings } from "./errors.ts"
import { code as codeBlock, type Html, html, inline, nothing } from "./html.ts"
import { type Components, type OpenApiDocument, type OperationObject, resolve } from "./openApi.ts"
import type { Part } from "./pages.ts"

/** Errors that many operations share, described in one place. */
export interface SharedErrors {
  readonly id: string
  /** The requests that they belong to: "any request …". */
  readonly of: string
  readonly codes: ReadonlyArray<ErrorCode>
  readonly isOf: (operation: OperationObject) => boolean
}

const kinds: ReadonlyArray<Omit<SharedErrors, "codes">> = [
  { id: "errors-any", of: "any request", isOf: () => true },
  { id: "errors-keyed", of: "any request with a key", isOf: ({ security }) => security.length > 0 },
  { id: "errors-body", of: "any request with a body", isOf: ({ requestBody }) => requestBody !== undefined }
]

/** The codes that an operation can answer with: each has an example by its name. */
const codesOf = (components: Components, { responses }: OperationObject): ReadonlyArray<ErrorCode> => {
  const examples = Object.values(responses).flatMap((response) =>
    Object.values(resolve(components, "responses", response).content ?? {}).flatMap(({ examples = {} }) =>
      Object.keys(examples)
    )
  )
  return errorCodes.filter((code) => examples.includes(code))
}

/** The codes that all operations of a kind share; each code is listed with the widest kind. */
export const sharedErrors = ({ components, paths }: OpenApiDocument): ReadonlyArray<SharedErrors> => {
  const operations = Object.values(paths).flatMap((item) => Object.values(item))
  const listed = new Set<ErrorCode>()
  return kinds.map((kind) => {
    const each = operations.filter(kind.isOf).map((operation) => codesOf(components, operation))
    const codes = errorCodes.filter((code) => !listed.has(code) && each.every((some) => some.includes(code)))
    for (const code of codes) listed.add(code)
    return { ...kind, codes }
  })
}

const link = (code: ErrorCode): Html => html`${statusOf[code]} <a href="#error-${code}"><code>${code}</code></a>`

/** The errors of an operation: its own, and links to shared ones. */
export const errorsOf = (
  components: Components,
  shared: ReadonlyArray<SharedErrors>,
  operation: OperationObject
): Html => {
  const others = shared.filter(({ isOf }) => isOf(operation))
  const elsewhere = new Set(others.flatMap(({ codes }) => codes))
  const own = codesOf(components, operation).filter((code) => !elsewhere.has(code))
  const list =
    own.length === 0
      ? nothing
      : html`<dl class="fields">${own.map(
          (code) => html`<dt>${link(code)}</dt><dd><p>${inline(meanings[code].when)}</p></dd>`
        )}</dl>`
  return html`<h3>Errors</h3>${list}<p class="headers">${own.length === 0 ? "Those" : "And those"} of ${others.map(
    ({ id, of }, i) => html`${i === 0 ? "" : i === others.length - 1 ? " and " : ", "}<a href="#${id}">${of}</a>`
  )}.</p>`
}

/** Every code once, with an example of its body, after the codes that many operations share. */
export const errorParts = (shared: ReadonlyArray<SharedErrors>): ReadonlyArray<Part> => [
  {
    id: "error-codes",
    title: "Error codes",
    label: "Errors",
    html: html`<dl class="fields">${shared.map(
      ({ codes, id, of }) =>
        html`<dt id="${id}">Of ${of}</dt><dd><p>${codes.map((code, i) => html`${i === 0 ? "" : ", "}${link(code)}`)}</p></dd>`
    )}</dl>`
  },
  ...errorCodes.map((code): Part => {
    const { when: description } = meanings[code]
    const example = codeBlock(JSON.stringify(exampleError(code), null, 2))
    const text = html`<p>${inline(description)}</p><details><summary aria-label="Example of ${code}">Example</summary>${example}</details>`
    return {
      id: `error-${code}`,
      title: code,
      label: `Error ${statusOf[code]}`,
      description,
      look: "detail",
      html: text
    }
  })
]
