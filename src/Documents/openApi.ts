/** A JSON Schema of draft 2020-12, as far as the documents use it. */
export interface JsonSchema {
  readonly $ref?: string
  readonly type?: string | ReadonlyArray<string>
  readonly description?: string
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: ReadonlyArray<string>
  readonly items?: JsonSchema
  readonly additionalProperties?: boolean | JsonSchema
  readonly anyOf?: ReadonlyArray<JsonSchema>
  readonly allOf?: ReadonlyArray<JsonSchema>
  readonly enum?: ReadonlyArray<unknown>
  readonly const?: unknown
  readonly format?: string
  readonly pattern?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly uniqueItems?: boolean
  readonly maxProperties?: number
}

export interface Reference {
  readonly $ref: string
}

export interface Example {
  readonly summary?: string
  readonly value: unknown
}

export interface HeaderObject {
  readonly description: string
  /** Whether every response that lists the header has it. */
  readonly required: boolean
  readonly schema: JsonSchema
  readonly example?: unknown
}

export interface MediaType {
  readonly schema: JsonSchema
  readonly examples?: Readonly<Record<string, Example>>
}

export interface Response {
  readonly description: string
  readonly headers?: Readonly<Record<string, HeaderObject | Reference>>
  readonly content?: Readonly<Record<string, MediaType>>
}

export interface Parameter {
  readonly name: string
  readonly in: "query" | "path" | "header"
  readonly required: boolean
  readonly description: string
  /** How an object is written: `name[key]=value`. */
  readonly style?: "deepObject"
  readonly explode?: true
  readonly schema: JsonSchema
  readonly example?: unknown
}

export interface OperationObject {
  readonly operationId: string
  readonly tags: ReadonlyArray<string>
  readonly summary: string
  readonly description: string
  /** The names in a requirement are the permissions that the key needs. */
  readonly security: ReadonlyArray<Readonly<Record<string, ReadonlyArray<string>>>>
  readonly parameters?: ReadonlyArray<Parameter | Reference>
  readonly requestBody?: { readonly required: boolean; readonly content: Readonly<Record<string, MediaType>> }
  /** By status, and `default`. */
  readonly responses: Readonly<Record<string, Response | Reference>>
}

/** By method, in lower case. */
export type PathItem = Readonly<Record<string, OperationObject>>

export interface Components {
  readonly schemas: Readonly<Record<string, JsonSchema>>
  readonly responses: Readonly<Record<string, Response>>
  readonly parameters: Readonly<Record<string, Parameter>>
  readonly headers: Readonly<Record<string, HeaderObject>>
  readonly securitySchemes: Readonly<Record<string, Readonly<Record<string, string>>>>
}

/** An OpenAPI 3.1 document: https://spec.openapis.org/oas/v3.1.1.html */
export interface OpenApiDocument {
  readonly openapi: string
  readonly info: {
    readonly title: string
    readonly summary: string
    readonly description: string
    readonly version: string
    readonly license: { readonly name: string; readonly identifier: string }
  }
  readonly externalDocs: { readonly url: string; readonly description: string }
  readonly servers: ReadonlyArray<{ readonly url: string; readonly description: string }>
  readonly tags: ReadonlyArray<{ readonly name: string; readonly description: string }>
  readonly paths: Readonly<Record<string, PathItem>>
  readonly webhooks: Readonly<Record<string, PathItem>>
  readonly components: Components
}

type Named<Kind extends keyof Components> = Components[Kind][string]

/** Resolves a reference; any other value is returned as it is. */
export const resolve = <Kind extends keyof Components>(
  components: Components,
  kind: Kind,
  item: Named<Kind> | Reference
): Named<Kind> => {
  if (!("$ref" in item) || item.$ref === undefined) return item as Named<Kind>
  const found = components[kind][nameOf(item.$ref)]
  if (found === undefined) throw new Error(`${item.$ref} is not in the document`)
  return found as Named<Kind>
}

export const refer = (kind: keyof Components, name: string): Reference => ({ $ref: `#/components/${kind}/${name}` })

/** The name that a reference ends with. */
export const nameOf = ($ref: string): string => $ref.slice($ref.lastIndexOf("/") + 1)
