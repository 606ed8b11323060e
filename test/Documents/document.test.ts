import { HttpApi } from "@effect/platform"
import { Context, Option } from "effect"
import { describe, expect, it } from "vitest"
import { Api } from "../../src/Api.ts"
import { RequiredPermission } from "../../src/Auth/Api.ts"
import { meanings } from "../../src/Documents/errors.ts"
import { exampleEvent } from "../../src/Documents/examples.ts"
import type { MediaType, OperationObject, Response } from "../../src/Documents/openApi.ts"
import { makeDocument } from "../../src/Documents.ts"
import { errorCodes } from "../../src/Domain/ApiError.ts"
import { EventKind } from "../../src/Domain/Event.ts"
import { problemsAt, resolve } from "../lib/openapi.ts"

const document = makeDocument({
  publicUrl: "https://pay.example.com",
  limits: { perMinute: 100, perHour: 1_000 }
})
const { components, paths, webhooks } = document

const operations = Object.entries(paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => [method, path, operation] as const)
)

const responsesOf = ({ responses }: OperationObject): ReadonlyArray<readonly [status: string, response: Response]> =>
  Object.entries(responses).map(([status, response]) => [status, resolve(components, "responses", response)])

const place = (kind: "paths" | "webhooks", path: string, method: string, ...rest: ReadonlyArray<string>) => [
  kind,
  path,
  method,
  ...rest
]

/** Every media type of an operation, with its place in the document. */
const mediaTypes = (kind: "paths" | "webhooks", path: string, method: string, operation: OperationObject) => {
  const of = (content: Readonly<Record<string, MediaType>> | undefined, ...at: ReadonlyArray<string>) =>
    Object.entries(content ?? {}).map(
      ([type, media]) => [[...place(kind, path, method), ...at, "content", type, "schema"], media] as const
    )
  return [
    ...of(operation.requestBody?.content, "requestBody"),
    ...Object.entries(operation.responses).flatMap(([status, response]) =>
      "$ref" in response ? [] : of(response.content, "responses", status)
    )
  ]
}

describe("the OpenAPI document", () => {
  it("has exactly the routes of the definition, with their permissions", () => {
    const defined: Array<string> = []
    HttpApi.reflect(Api, {
      onGroup: () => {},
      onEndpoint: ({ endpoint, mergedAnnotations }) => {
        const permission = Option.getOrUndefined(Context.getOption(mergedAnnotations, RequiredPermission))
        const path = endpoint.path.replace(":id", "{id}")
        defined.push(`${endpoint.method.toLowerCase()} ${path} ${permission}`)
      }
    })
    const documented = operations.map(([method, path, { security }]) => {
      const [requirement] = security
      return `${method} ${path} ${requirement?.["apiKey"]?.join()}`
    })
    expect(documented.sort()).toEqual(defined.sort())
  })

  it("has the possible errors of each operation", () => {
    const statuses = operations.map(([method, path, { responses }]) => `${method} ${path} ${Object.keys(responses)}`)
    expect(statuses.sort()).toEqual([
      "delete /v1/refunds/{id} 200,400,401,403,404,405,409,429,503,default",
      "delete /v1/webhooks/{id} 200,400,401,403,404,405,429,503,default",
      "get /healthz 200,400,405,503,default",
      "get /openapi.json 200,304,400,405,503,default",
      "get /readyz 200,400,405,503,default",
      "get /v1/currencies 200,304,400,401,403,405,429,503,default",
      "get /v1/deliveries 200,400,401,403,404,405,429,503,default",
      "get /v1/deliveries/{id} 200,400,401,403,404,405,429,503,default",
      "get /v1/events/stream 200,400,401,403,405,429,503,default",
      "get /v1/exceptions 200,400,401,403,405,429,503,default",
      "get /v1/exceptions/{id} 200,400,401,403,404,405,429,503,default",
      "get /v1/invoices 200,400,401,403,405,429,503,default",
      "get /v1/invoices/{id} 200,400,401,403,404,405,429,503,default",
      "get /v1/ledger 200,400,401,403,405,429,503,default",
      "get /v1/payments 200,400,401,403,405,429,503,default",
      "get /v1/payments/{id} 200,400,401,403,404,405,429,503,default",
      "get /v1/quotes/{id} 200,400,401,403,404,405,429,503,default",
      "get /v1/refunds 200,400,401,403,405,429,503,default",
      "get /v1/refunds/{id} 200,400,401,403,404,405,429,503,default",
      "get /v1/webhooks 200,400,401,403,405,429,503,default",
      "get /v1/webhooks/{id} 200,400,401,403,404,405,429,503,default",
      "patch /v1/payments/{id} 200,400,401,403,404,405,409,413,415,422,429,503,507,default",
      "patch /v1/refunds/{id} 200,400,401,403,404,405,409,413,415,422,429,503,default",
      "patch /v1/webhooks/{id} 200,400,401,403,404,405,409,413,415,422,429,503,507,default",
      "post /v1/deliveries/redeliver 200,400,401,403,404,405,409,413,415,422,429,503,507,default",
      "post /v1/deliveries/{id}/redeliver 200,400,401,403,404,405,409,413,415,422,429,503,507,default",
      "post /v1/exceptions/{id}/resolve 200,400,401,403,404,405,409,413,415,422,429,503,507,default",
      "post /v1/invoices 201,400,401,403,405,409,413,415,422,429,503,507,default",
      "post /v1/invoices/{id}/cancel 200,400,401,403,404,405,409,413,415,422,429,503,default",
      "post /v1/invoices/{id}/choose 200,400,401,403,404,405,409,413,415,422,429,503,507,default",
      "post /v1/payments 201,400,401,403,405,409,413,415,422,429,503,507,default",
      "post /v1/payments/{id}/cancel 200,400,401,403,404,405,409,413,415,422,429,503,default",
      "post /v1/payments/{id}/refunds 201,400,401,403,404,405,409,413,415,422,429,503,507,default",
      "post /v1/quotes 201,400,401,403,405,409,413,415,422,429,503,507,default",
      "post /v1/webhooks 200,201,400,401,403,405,409,413,415,422,429,503,507,default"
    ])
  })

  it("has every error code, and nothing that the library adds", () => {
    const text = JSON.stringify(document)
    for (const code of errorCodes) expect(text).toContain(`"#/components/schemas/Error.${code}"`)
    expect(text).not.toMatch(/HttpApiDecodeError|"_tag"|a string matching|"title":"(?!tilld)/)
  })

  it("describes every parameter, header and field", () => {
    const undescribed = Object.entries(components.schemas).flatMap(([name, { properties = {} }]) =>
      Object.entries(properties)
        .filter(([field, { $ref, description }]) => $ref === undefined && !description && field !== "error")
        .map(([field]) => `${name}.${field}`)
    )
    // These literals need no description.
    expect(undescribed).toEqual(["DeletedWebhookEndpoint.deleted", "Alive.alive"])
    for (const [, , { parameters = [] }] of operations) {
      for (const parameter of parameters) {
        expect(resolve(components, "parameters", parameter).description).not.toBe("")
      }
    }
  })

  it("opens every object without fields of its own, which typed clients could not fill otherwise", () => {
    const closed: Array<unknown> = []
    JSON.stringify(document, (key, value) => {
      if (value?.type === "object" && !value.properties && !value.additionalProperties) closed.push(key)
      return value
    })
    expect(closed).toEqual([])
  })

  it("has the headers of the responses", () => {
    for (const [method, path, operation] of operations) {
      const takesBody = ["post", "patch"].includes(method)
      const keyed = operation.security.length > 0
      for (const [status, { headers = {} }] of responsesOf(operation)) {
        expect(Object.keys(headers), `${path} ${status}`).toContain("X-Request-Id")
        expect("X-RateLimit-Reset" in headers, `${path} ${status}`).toBe(
          keyed && status !== "401" && status !== "default"
        )
        expect("Allow" in headers).toBe(status === "405")
        expect("Location" in headers).toBe(status === "201" && ["/v1/payments", "/v1/invoices"].includes(path))
        expect("Idempotent-Replayed" in headers).toBe(takesBody && ["200", "201"].includes(status))
        expect("ETag" in headers, `${path} ${status}`).toBe(
          ["/openapi.json", "/v1/currencies"].includes(path) && ["200", "304"].includes(status)
        )
        if (status === "429") expect(headers["Retry-After"]).toEqual({ $ref: "#/components/headers/Retry-After" })
      }
    }
  })

  it("has an Idempotency-Key for every POST and PATCH, and for no other method", () => {
    for (const [method, , { parameters = [] }] of operations) {
      const names = parameters.map((parameter) => resolve(components, "parameters", parameter).name)
      expect(names.includes("Idempotency-Key")).toBe(method === "post" || method === "patch")
    }
  })
})

describe("examples", () => {
  const own = [
    ...operations.flatMap(([method, path, operation]) => mediaTypes("paths", path, method, operation)),
    ...Object.entries(webhooks).flatMap(([kind, item]) =>
      Object.entries(item).flatMap(([method, operation]) => mediaTypes("webhooks", kind, method, operation))
    ),
    ...Object.entries(components.responses).flatMap(([name, { content = {} }]) =>
      Object.entries(content).map(
        ([type, media]) => [["components", "responses", name, "content", type, "schema"], media] as const
      )
    )
  ]

  it.each(own.map(([at, media]) => [at.slice(0, -3).join(" "), at, media] as const))(
    "of %s are valid",
    (_, at, media) => {
      const examples = Object.values(media.examples ?? {})
      expect(examples.length).toBeGreaterThan(0)
      for (const { value } of examples) expect(problemsAt(document, at, value), JSON.stringify(value)).toEqual([])
    }
  )

  it("of every event kind are valid only by the schema of that kind", () => {
    for (const kind of EventKind.literals) {
      for (const other of EventKind.literals) {
        const at = place("webhooks", other, "post", "requestBody", "content", "application/json", "schema")
        expect(problemsAt(document, at, exampleEvent(kind)).length === 0, `${kind} as ${other}`).toBe(kind === other)
      }
    }
  })

  it("of every error have one form", () => {
    expect(Object.keys(meanings).sort()).toEqual([...errorCodes].sort())
    for (const code of errorCodes) {
      const { properties: { error } = {} } = components.schemas[`Error.${code}`] ?? {}
      const fields = Object.keys(error?.properties ?? {}).filter((field) => field !== "details")
      expect(fields).toEqual(code === "UNAUTHORIZED" ? ["code", "message"] : ["code", "message", "requestId"])
    }
  })

  it("has patterns that mean the same with and without the u flag", () => {
    const reference = components.schemas["CreatePayment"]?.properties?.["merchantRef"]?.pattern ?? ""
    const isPrintable = (text: string) =>
      /^[^\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]$/u.test(text)
    const basicPlane = Array.from({ length: 0x10000 }, (_, code) => String.fromCharCode(code))
    for (const flags of ["", "u"]) {
      const pattern = new RegExp(reference, flags)
      expect(basicPlane.filter((text) => pattern.test(text) !== isPrintable(text))).toEqual([])
      expect(["Bestellung 7 – ünïcödé 💶", "💶".repeat(128)].filter((text) => !pattern.test(text))).toEqual([])
    }
    const amount = components.schemas["CreateQuote"]?.properties?.["amount"]?.pattern ?? ""
    expect(["0.5", "100", "0.000000000000000001"].filter((text) => !new RegExp(amount).test(text))).toEqual([])
    expect(["01", "1.", ".5", "-1", "1e3"].filter((text) => new RegExp(amount).test(text))).toEqual([])
    for (const [, pattern = ""] of JSON.stringify(document).matchAll(/"pattern":("(?:[^"\\]|\\.)*")/g)) {
      expect(JSON.parse(pattern)).not.toContain("\\p{")
    }
  })
})
