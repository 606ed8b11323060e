/** A visitor of the portal: signs in as the command line does, keeps the cookie, and sends forms with the CSRF token. */
import { Effect } from "effect"
import type { BrowserContext } from "playwright-core"
import { request as send } from "undici"
import { makeLoginLink } from "../../src/Auth/keyOperations.ts"
import { linkPath, makeLink } from "../../src/Auth/loginLinks.ts"
import { Invocation } from "../../src/Control/Invocation.ts"
import { ask } from "../../src/commands/askDaemon.ts"
import { AccountId } from "../../src/Domain/Ids.ts"
import type { Role } from "../../src/Domain/Person.ts"
import { csrfTokenOf } from "../../src/Portal/Desk.ts"

export interface Shown {
  readonly status: number
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
  readonly text: string
}

type Headers = Readonly<Record<string, string>>
type Fields = Readonly<Record<string, string>> | URLSearchParams

/** One request, as a browser sends it. */
export type Exchange = (method: string, path: string, headers: Headers, body?: string) => Effect.Effect<Shown>

/** A browser without a window: one cookie jar at one origin. Redirects are not followed. */
export interface Visitor {
  readonly get: (path: string, headers?: Headers) => Effect.Effect<Shown>
  /** Sends a form from a page of the origin, with the CSRF token unless the fields have one. */
  readonly post: (path: string, fields?: Fields, headers?: Headers) => Effect.Effect<Shown>
  /** The secret in its session cookie. */
  readonly secret: () => string | undefined
  readonly cookies: Map<string, string>
}

export const makeVisitor = (origin: string, exchange: Exchange): Visitor => {
  const cookies = new Map<string, string>()
  const secret = () => cookies.get("__Host-tilld") ?? cookies.get("tilld")
  const visit: Exchange = (method, path, headers, body) => {
    const cookie = Array.from(cookies, ([name, value]) => `${name}=${value}`).join("; ")
    return Effect.tap(
      exchange(method, path, { ...(cookie === "" ? {} : { cookie }), ...headers }, body),
      ({ headers }) =>
        Effect.sync(() => {
          for (const line of [headers["set-cookie"] ?? []].flat()) {
            const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? []
            if (value === "") cookies.delete(name)
            else cookies.set(name, value)
          }
        })
    )
  }
  return {
    secret,
    cookies,
    get: (path, headers = {}) => visit("GET", path, headers),
    post: (path, fields = {}, headers = {}) => {
      const form = new URLSearchParams(fields)
      const held = secret()
      if (held !== undefined && !form.has("csrf")) form.set("csrf", csrfTokenOf(held))
      const type = { "content-type": "application/x-www-form-urlencoded" }
      return visit("POST", path, { ...type, origin, ...headers }, form.toString())
    }
  }
}

/** Over HTTP, to the server at `url`. */
export const visitorOf = (url: string): Visitor =>
  makeVisitor(url, (method, path, headers, body) =>
    Effect.promise(async () => {
      const response = await send(`${url}${path}`, { method: method as "GET", headers, body: body ?? null })
      return { status: response.statusCode, headers: response.headers, text: await response.body.text() }
    })
  )

/** The person who signs in. Default: an operator, and an admin of an account. */
export interface Who {
  readonly role?: Role
  readonly account?: string
  readonly name?: string
}

const terms = ({ account, name = "Ada", role = account === undefined ? "operator" : "admin" }: Who) => ({
  name,
  role,
  account: account === undefined ? undefined : AccountId.make(account)
})

/** The path of a one-time link, made in this process's store. */
export const newLink = (who: Who = {}) => Effect.map(Effect.orDie(makeLink(terms(who))), ({ token }) => linkPath(token))

/** The same by the socket of a daemon, as the command makes it, for an operator. */
export const linkBySocket = ({ database }: { readonly database: string }) =>
  ask({ socket: `${database}.sock` }, makeLoginLink, { name: "Ada" }).pipe(
    Effect.provideService(Invocation, { env: {}, user: "suite" }),
    Effect.map(({ url }) => new URL(url).pathname)
  )

export const entered = (visitor: Visitor, link: string) =>
  Effect.map(visitor.post(link), ({ status, text }) => {
    if (status !== 303) throw new Error(`the link was refused: ${status} ${text}`)
    return visitor
  })

/** Signs in at a server of this process, such as `TestApi`. */
export const signIn = ({ host, port }: { readonly host: string; readonly port: number }, who: Who = {}) =>
  Effect.flatMap(newLink(who), (link) => entered(visitorOf(`http://${host}:${port}`), link))

/** Copies the visitor's session into a real browser. */
export const bring = (visitor: Visitor, context: BrowserContext, url: string) =>
  Effect.promise(() =>
    context.addCookies(Array.from(visitor.cookies, ([name, value]) => ({ name, value, url, httpOnly: true })))
  )
