import { type Html, html, nothing } from "./html.ts"
import { type Components, type JsonSchema, nameOf, resolve } from "./openApi.ts"
import { inline } from "./prose.ts"

const deref = (components: Components, schema: JsonSchema): JsonSchema => resolve(components, "schemas", schema)

const range = ({ maximum, minimum }: JsonSchema): string => {
  if (minimum !== undefined && maximum !== undefined) return ` ${minimum}–${maximum}`
  return minimum === undefined ? "" : ` ≥ ${minimum}`
}

/** `array of string`, `integer 60–86400`, `string or null` */
export const typeName = (components: Components, schema: JsonSchema): string => {
  const { anyOf, items, type } = deref(components, schema)
  if (items !== undefined) return `array of ${typeName(components, items)}`
  if (anyOf !== undefined) return anyOf.map((each) => typeName(components, each)).join(" or ")
  return `${String(type ?? "any")}${range(deref(components, schema))}`
}

const values = (components: Components, schema: JsonSchema): ReadonlyArray<unknown> => {
  const { enum: own, items } = deref(components, schema)
  return own ?? (items === undefined ? [] : values(components, items))
}

/** What a field holds that has fields itself. */
const inside = (components: Components, schema: JsonSchema): JsonSchema | undefined => {
  const { items, properties } = deref(components, schema)
  if (properties !== undefined) return schema
  return items === undefined ? undefined : inside(components, items)
}

const choices = (given: ReadonlyArray<unknown>): Html =>
  given.length < 2
    ? nothing
    : html`<p class="choices">${given.map((value) => html`<code>${String(value)}</code> `)}</p>`

const field = (components: Components, name: string, schema: JsonSchema, required: boolean): Html => {
  const { description } = schema.$ref === undefined ? schema : deref(components, schema)
  const nested = inside(components, schema)
  return html`<dt><code>${name}</code> <span class="type">${typeName(components, schema)}</span>${
    required ? html` <span class="required">required</span>` : nothing
  }</dt><dd>${description === undefined ? nothing : html`<p>${inline(description)}</p>`}${choices(
    values(components, schema)
  )}${nested === undefined ? nothing : nestedFields(components, nested)}</dd>`
}

/** The name of a schema; one that was written out with another description is known by its fields. */
const schemaName = ({ schemas }: Components, { $ref, properties }: JsonSchema): string | undefined => {
  if ($ref !== undefined) return nameOf($ref)
  const text = JSON.stringify(properties)
  return Object.entries(schemas).find(([, other]) => JSON.stringify(other.properties) === text)?.[0]
}

/** Links to a description elsewhere instead of repeating it. */
const nestedFields = (components: Components, schema: JsonSchema): Html => {
  const name = schemaName(components, schema)
  return name === undefined ? fields(components, schema) : html`<p>See <a href="#${name}">${name}</a>.</p>`
}

/** The fields of an object. */
export const fields = (components: Components, schema: JsonSchema): Html => {
  const { properties = {}, required = [] } = deref(components, schema)
  return html`<dl class="fields">${Object.entries(properties).map(([name, each]) =>
    field(components, name, each, required.includes(name))
  )}</dl>`
}

/** A parameter or a header reads like a field. */
export const named = (
  components: Components,
  items: ReadonlyArray<{
    readonly name: string
    readonly required: boolean
    readonly description: string
    readonly schema: JsonSchema
  }>
): Html =>
  html`<dl class="fields">${items.map(({ description, name, required, schema }) =>
    field(components, name, { ...schema, description }, required)
  )}</dl>`
