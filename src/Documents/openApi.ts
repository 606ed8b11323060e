import type { OpenAPIV3_1 as Spec } from "openapi-types"

/** OpenAPI's types, read only, and below with what tilld's document always has. */
type Fixed<T> =
  T extends ReadonlyArray<infer Item>
    ? ReadonlyArray<Fixed<Item>>
    : T extends object
      ? { readonly [Key in keyof T]: Fixed<T[Key]> }
      : T

type Named<T> = Readonly<Record<string, T>>

type Nested = "properties" | "additionalProperties" | "allOf" | "anyOf" | "oneOf" | "not"

/** A JSON Schema of draft 2020-12, or a reference to one. */
export interface JsonSchema extends Fixed<Omit<Spec.BaseSchemaObject, Nested>> {
  readonly $ref?: string
  readonly type?: string | ReadonlyArray<string>
  readonly properties?: Named<JsonSchema>
  readonly items?: JsonSchema
  readonly additionalProperties?: boolean | JsonSchema
  readonly anyOf?: ReadonlyArray<JsonSchema>
  readonly allOf?: ReadonlyArray<JsonSchema>
}

export type Reference = Fixed<Pick<Spec.ReferenceObject, "$ref">>

export type Example = Fixed<Spec.ExampleObject>

type ParameterBase = Required<Pick<Spec.ParameterBaseObject, "description" | "required">> &
  Pick<Spec.ParameterBaseObject, "style" | "explode" | "example">

/** `required`: whether every response that lists the header has it. */
export interface HeaderObject extends Fixed<ParameterBase> {
  readonly schema: JsonSchema
}

export interface Parameter extends HeaderObject {
  readonly name: string
  readonly in: "query" | "path" | "header"
}

export interface MediaType {
  readonly schema: JsonSchema
  readonly examples?: Named<Example>
}

export interface Response {
  readonly description: string
  readonly headers?: Named<HeaderObject | Reference>
  readonly content?: Named<MediaType>
}

type OperationBase = Pick<Spec.OperationObject, "operationId" | "tags" | "summary" | "description" | "security">

/** The names in a security requirement are the permissions that the key needs. */
export interface OperationObject extends Fixed<Required<OperationBase>> {
  readonly parameters?: ReadonlyArray<Parameter | Reference>
  readonly requestBody?: { readonly required: boolean; readonly content: Named<MediaType> }
  /** By status, and `default`. */
  readonly responses: Named<Response | Reference>
}

/** By method, in lower case. */
export type PathItem = Named<OperationObject>

export interface Components extends Fixed<Required<Pick<Spec.ComponentsObject, "securitySchemes">>> {
  readonly schemas: Named<JsonSchema>
  readonly responses: Named<Response>
  readonly parameters: Named<Parameter>
  readonly headers: Named<HeaderObject>
}

type DocumentBase = Pick<Spec.Document, "openapi" | "info" | "externalDocs" | "servers" | "tags">

/** An OpenAPI 3.1 document: https://spec.openapis.org/oas/v3.1.1.html */
export interface OpenApiDocument extends Fixed<Required<DocumentBase>> {
  readonly paths: Named<PathItem>
  readonly webhooks: Named<PathItem>
  readonly components: Components
}

export const refer = (kind: keyof Components, name: string): Reference => ({ $ref: `#/components/${kind}/${name}` })

/** The name that a reference ends with. */
export const nameOf = ($ref: string): string => $ref.slice($ref.lastIndexOf("/") + 1)
