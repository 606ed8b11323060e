/** Connecting a shop: what its plugin sends the browser to, and what the browser brings back, as plugins read it. */
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import type { BrowserContext } from "playwright-core"
import { Keys } from "../../src/Auth.ts"
import { isPluginKey } from "../../src/Domain/ApiKey.ts"
import { commonPluginPermissions, pluginPermissions, pluginPermissionTexts } from "../../src/Domain/Plugin.ts"
import { problemsOf } from "../lib/axe.ts"
import { visitor } from "../lib/browser.ts"
import { bring, newLink, type Visitor, visitorOf } from "../lib/portal.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { execute, rows } from "../lib/store.ts"
import { openShop, portalApp, somebody, valueOf } from "../Portal/shop.ts"

const shopOrigin = "https://shop.example"
const callback = `${shopOrigin}/?btcpay-settings-callback`

/** The query as the PHP SDK writes it. */
const asked = (over: Readonly<Record<string, string | ReadonlyArray<string> | undefined>> = {}) =>
  Object.entries({
    permissions: commonPluginPermissions,
    applicationName: "WooCommerce",
    strict: "true",
    selectiveStores: "true",
    redirect: callback,
    ...over
  })
    .flatMap(([name, value]) => [value ?? []].flat().map((each) => `${name}=${encodeURIComponent(each)}`))
    .join("&")

/** What a form of a page posts, as a browser without scripts sends it. */
const fieldsOf = (text: string) =>
  Array.from(
    text.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g),
    ([, name = "", value = ""]) => [name, value] as const
  )

/** Opens the page and sends its form, with every box as it is shown unless `boxes` says which are checked. */
const connect = Effect.fnUntraced(function* (who: Visitor, path: string, boxes = "plugins frame") {
  const { text } = yield* who.get(path)
  const checked: Array<[string, string]> = boxes.split(" ").map((box: string) => [box, "on"])
  return yield* who.post(path, new URLSearchParams([["id", valueOf(text, "id")], ...checked]))
})

const shopRow = (account: string) => rows("SELECT plugins, frame_origins FROM shops WHERE account_id = ?", [account])
const keysOf = (account: string) =>
  rows<{ name: string }>(
    "SELECT name, mode, permissions, plugin_permissions FROM api_keys WHERE account_id = ? AND name <> ?",
    [account, "suite"]
  )
const countKeys = rows("SELECT id FROM api_keys")

/** The shop's own pages: notes what is posted to them. */
const shopPages = async (context: BrowserContext) => {
  const posts: Array<{
    readonly url: string
    readonly headers: Readonly<Record<string, string>>
    readonly body: string
  }> = []
  await context.route(`${shopOrigin}/**`, async (route) => {
    const request = route.request()
    posts.push({ url: request.url(), headers: await request.allHeaders(), body: request.postData() ?? "" })
    await route.fulfill({ contentType: "text/html", body: "<h1>Connected</h1>" })
  })
  return posts
}

liveSuite(portalApp, "connecting a shop", (test, it) => {
  it.scoped.each([true, false])("a browser with scripts (%s) brings the key to the shop", (javaScriptEnabled) =>
    Effect.gen(function* () {
      const { account, admin, api } = yield* openShop
      const url = `http://${api.host}:${api.port}`
      const { context, strayed } = yield* visitor(url, { javaScriptEnabled })
      yield* bring(admin, context, url)
      const posts = yield* Effect.promise(async () => {
        const noted = await shopPages(context)
        const page = await context.newPage()
        await page.goto(`${url}/api-keys/authorize?${asked()}`)
        await page.getByRole("heading", { name: "Connect a shop" }).waitFor()
        const text = (await page.locator("main").textContent()) ?? ""
        for (const each of commonPluginPermissions) expect(text).toContain(pluginPermissionTexts[each])
        for (const said of ["WooCommerce", account, "test mode", shopOrigin]) expect(text).toContain(said)
        if (javaScriptEnabled) expect(await problemsOf(page)).toEqual([])
        await page.getByLabel(/Turn on shop plugins/).check()
        await page.getByRole("button", { name: "Connect the shop" }).click()
        if (!javaScriptEnabled) await page.getByRole("button", { name: "Go on to the shop" }).click()
        await page.getByRole("heading", { name: "Connected" }).waitFor()
        return noted
      })
      expect(posts.map((post) => post.url)).toEqual([callback])
      const { body = "", headers = {} }: Partial<(typeof posts)[number]> = posts[0] ?? {}
      expect(headers["content-type"]).toBe("application/x-www-form-urlencoded")
      expect(headers).not.toHaveProperty("referer")
      expect([undefined, "null"]).toContain(headers["origin"])
      const form = new URLSearchParams(body)
      expect([...new Set(form.keys())]).toEqual(["apiKey", "userId", "permissions[]"])
      expect(form.getAll("permissions[]")).toEqual(commonPluginPermissions.map((each) => `${each}:${account}-test`))
      const [person] = yield* rows("SELECT id FROM people WHERE account_id = ? AND role = 'admin'", [account])
      expect({ id: form.get("userId") }).toEqual(person)
      expect(form.get("userId")).toMatch(/^[A-Za-z0-9_-]+$/)

      const key = yield* (yield* Keys).authenticate(form.get("apiKey") ?? "", () => "192.0.2.1")
      expect(key).toMatchObject({ account, mode: "test", permissions: [], pluginPermissions: commonPluginPermissions })
      expect(key !== undefined && isPluginKey(key)).toBe(true)
      expect(yield* shopRow(account)).toEqual([{ plugins: "on", frame_origins: shopOrigin }])
      const audit = yield* rows<{ detail: string }>(
        "SELECT detail FROM audit WHERE account_id = ? AND act = 'keys create' AND via = 'portal'",
        [account]
      )
      expect(audit.map(({ detail }) => JSON.parse(detail))).toEqual([
        expect.objectContaining({
          ...{ key: key?.id, application: "WooCommerce", origin: shopOrigin },
          pluginPermissions: commonPluginPermissions
        })
      ])
      expect(strayed).toEqual([])
    })
  )

  test("leads whoever is not signed in back to it with the whole query, in test mode first", function* () {
    const { account, admin, api } = yield* openShop
    const password = "correct horse battery"
    yield* admin.post(`/portal/a/${account}/test/me/password`, { name: "grace", password })
    const stranger = visitorOf(`http://${api.host}:${api.port}`)
    const follow = Effect.fnUntraced(function* (from: string) {
      const { headers, status } = yield* stranger.get(from)
      expect(status).toBe(303)
      return String(headers["location"])
    })
    // With a slash as the Shopware plugin has it, which does not escape the address either.
    const query = `applicationName=Shopware&permissions=btcpay.store.canviewinvoices&redirect=${shopOrigin}/api/_action?x=1`
    const signIn = yield* follow(yield* follow(`/api-keys/authorize/?${query}`))
    expect(signIn).toMatch(/^\/portal\/sign-in\?next=/)
    const next = new URL(signIn, "http://tilld").searchParams.get("next") ?? ""
    const { text } = yield* stranger.get(signIn)
    expect(valueOf(text, "next").replaceAll("&amp;", "&")).toBe(next)
    const entered = yield* stranger.post("/portal/sign-in", { account, name: "grace", password, next })
    expect(entered).toMatchObject({ status: 303, headers: { location: `/portal/pair?${query}` } })
    const page = yield* follow(`/portal/pair?${query}`)
    expect(page).toBe(`/portal/a/${account}/test/pair?${query}`)
    expect((yield* stranger.get(page)).text).toContain("Shopware")
    expect((yield* stranger.get("/api-keys/else")).status).toBe(404)
  })

  test("the key has exactly what was asked for, once each, in its order, and of one store", function* () {
    const { account, admin, base } = yield* openShop
    const [one = "", two = "", three = ""] = ["cancreateinvoice", "canviewinvoices", "webhooks.canmodifywebhooks"].map(
      (name) => `btcpay.store.${name}`
    )
    for (const [query, permissions] of [
      [asked({ permissions: [one, two, one] }), [one, two]],
      [`${asked({ permissions: [] })}&permissions%5B%5D=${two}`, [two]],
      [`${asked({ permissions: [] })}&permissions[0]=${three}&permissions[1]=${one}`, [three, one]],
      [asked({ permissions: [...pluginPermissions] }), pluginPermissions],
      [
        asked({ permissions: [one, "btcpay.server.canuseinternallightningnode", "unrestricted"], strict: "false" }),
        [one]
      ]
    ] as const) {
      const answer = yield* connect(admin, `${base}/pair?${query}`)
      const form = new URLSearchParams(fieldsOf(answer.text).map((field) => [...field]))
      expect(form.getAll("permissions[]")).toEqual(permissions.map((each) => `${each}:${account}-test`))
      const key = yield* (yield* Keys).authenticate(form.get("apiKey") ?? "", () => "")
      expect(key?.pluginPermissions).toEqual(permissions)
    }
  })

  test("what is not offered is named, and prevents a strict request; nothing is given of users and servers", function* () {
    const { admin, base } = yield* openShop
    const before = yield* countKeys
    for (const [query, said] of [
      [asked({ permissions: [...commonPluginPermissions, "btcpay.store.canuselightningnode"] }), "canuselightningnode"],
      [asked({ permissions: [...commonPluginPermissions, "unrestricted"], strict: undefined }), "unrestricted"],
      [asked({ permissions: ["btcpay.user.canviewprofile"], strict: "false" }), "btcpay.user.canviewprofile"],
      [asked({ permissions: ["btcpay.store.canviewinvoices:else"], strict: "false" }), "canviewinvoices:else"],
      [asked({ permissions: [] }), "asks for nothing"]
    ] as const) {
      const page = `${base}/pair?${query}`
      const shown = yield* admin.get(page)
      expect([shown.status, shown.text.includes(said), shown.text.includes("Connect the shop")]).toEqual([
        422,
        true,
        false
      ])
      expect((yield* connect(admin, page)).status).toBe(422)
    }
    expect(yield* countKeys).toEqual(before)
  })

  test("leads to no other scheme, user or machine, and to http only on this machine for a test key", function* () {
    const { account, admin, base } = yield* openShop
    const before = yield* countKeys
    for (const redirect of [
      ...[
        "javascript:alert(1)",
        "data:text/html,x",
        "http://shop.example/",
        "/portal/me",
        "//shop.example",
        "shop.example"
      ],
      ...[
        "https://user@shop.example/",
        "https://:secret@shop.example/",
        "http://localhost.shop.example/",
        "file:///etc"
      ],
      ...["https://shop.example;script-src", "https://shop.example,other", "https://*.example/", "https:"]
    ]) {
      const page = `${base}/pair?${asked({ redirect })}`
      expect([redirect, (yield* admin.get(page)).status]).toEqual([redirect, 422])
      const refused = yield* connect(admin, page)
      expect([redirect, refused.status, refused.text.includes("must begin with https://")]).toEqual([
        redirect,
        422,
        true
      ])
    }
    const local = asked({ redirect: "http://localhost:8080/back" })
    expect((yield* admin.get(`/portal/a/${account}/live/pair?${local}`)).status).toBe(422)
    expect(yield* countKeys).toEqual(before)
    const made = yield* connect(admin, `${base}/pair?${local}`)
    expect(made.text).toContain('action="http://localhost:8080/back"')
    expect(made.headers["content-security-policy"]).toContain("form-action http://localhost:8080;")
  })

  test("its pages are in no frame or cache, and the last one leads to the shop alone", function* () {
    const { admin, base } = yield* openShop
    const page = `${base}/pair?${asked()}`
    const first = yield* admin.get(page)
    const last = yield* connect(admin, page)
    for (const [{ headers }, action] of [
      [first, "'self'"],
      [last, shopOrigin]
    ] as const) {
      const policy = String(headers["content-security-policy"])
      for (const rule of [
        "default-src 'none'",
        "script-src 'self'",
        `form-action ${action}`,
        "frame-ancestors 'none'"
      ]) {
        expect(policy.split("; ")).toContain(rule)
      }
      expect(headers).toMatchObject({ "cache-control": "no-store", "referrer-policy": "same-origin" })
    }
    expect(last.text.match(/<form/g)).toHaveLength(1)
    expect(last.text).toContain(`<form method="post" action="${callback}"`)
    expect(last.text).not.toContain("<script>")
  })

  test("a forged form makes no key, nor one of a viewer, of a stranger or of another account's admin", function* () {
    const { account, admin, api, base, viewer } = yield* openShop
    const other = yield* openShop
    const before = yield* countKeys
    const page = `${base}/pair?${asked()}`
    const id = valueOf((yield* admin.get(page)).text, "id")
    const fields = { id, plugins: "on" }
    const stranger = visitorOf(`http://${api.host}:${api.port}`)
    for (const [who, more, headers, status] of [
      [admin, { csrf: "wrong" }, {}, 403],
      [admin, { csrf: "" }, {}, 403],
      [admin, {}, { origin: "https://evil.example" }, 403],
      [admin, {}, { origin: "null" }, 403],
      [viewer, {}, {}, 403],
      [stranger, {}, {}, 403],
      [other.admin, {}, {}, 404]
    ] as const) {
      const answer = yield* who.post(page, { ...fields, ...more }, headers)
      expect([answer.status, answer.text.includes("svc_test")]).toEqual([status, false])
    }
    expect((yield* viewer.get(page)).status).toBe(403)
    expect(yield* countKeys).toEqual(before)
    expect(yield* shopRow(account)).toEqual([])
    // The id of another account's key rolls nothing, nor that of another kind of key.
    for (const of of [other.account, account]) {
      const [theirs] = yield* rows<{ id: string }>("SELECT id FROM api_keys WHERE account_id = ?", [of])
      const taken = yield* admin.post(page, { id: theirs?.id ?? "", plugins: "on" })
      expect([taken.status, taken.text.includes("svc_test")]).toEqual([422, false])
    }
    expect(yield* countKeys).toEqual(before)
  })

  test("names are text, and no longer than a hundred characters", function* () {
    const { account, admin, base } = yield* openShop
    const evil = `"><script>alert(1)</script>\u202e\u0000`
    const page = `${base}/pair?${asked({ applicationName: evil + "x".repeat(200), permissions: [evil, ...commonPluginPermissions], strict: "false", redirect: `${shopOrigin}/?a="><script>` })}`
    const shown = yield* admin.get(page)
    const made = yield* connect(admin, page)
    for (const { status, text } of [shown, made]) {
      expect(status).toBe(200)
      expect(text).not.toContain("<script>")
    }
    expect(shown.text).toContain("&lt;script>alert(1)&lt;/script>x")
    const [key] = yield* rows<{ name: string }>(
      "SELECT name FROM api_keys WHERE account_id = ? AND plugin_permissions <> ''",
      [account]
    )
    expect(key?.name).toMatch(/^"><script>alert\(1\)<\/script>x+$/)
    expect(key?.name.length).toBeLessThanOrEqual(100)
  })

  test("a form that is sent twice makes one key, which the last answer has", function* () {
    const { account, admin, base } = yield* openShop
    const page = `${base}/pair?${asked()}`
    const id = valueOf((yield* admin.get(page)).text, "id")
    const answers = yield* Effect.all(
      [admin.post(page, { id, plugins: "on" }), admin.post(page, { id, plugins: "on" })],
      {
        concurrency: 2
      }
    )
    const keys = answers.map(({ text }) => valueOf(text, "apiKey"))
    expect(new Set(keys).size).toBe(2)
    const works = yield* Effect.forEach(keys, (key) => Effect.flatMap(Keys, (all) => all.authenticate(key, () => "")), {
      concurrency: 1
    })
    expect(works.filter((key) => key !== undefined)).toHaveLength(1)
    expect((yield* keysOf(account)).filter(({ name }) => name === "WooCommerce")).toHaveLength(2)
    const fresh = yield* connect(admin, page)
    expect(fresh.status).toBe(200)
    expect(valueOf(fresh.text, "apiKey")).not.toBe(keys[0])
  })

  test("the switch has to be turned on, and a site is let frame the page only if that is wanted", function* () {
    const { account, admin, base } = yield* openShop
    const before = yield* countKeys
    const page = `${base}/pair?${asked()}`
    const refused = yield* connect(admin, page, "frame")
    expect(refused.status).toBe(422)
    expect(refused.text).toContain("must be turned on")
    expect(yield* countKeys).toEqual(before)
    expect(yield* shopRow(account)).toEqual([])
    expect((yield* connect(admin, page, "plugins")).status).toBe(200)
    expect(yield* shopRow(account)).toEqual([{ plugins: "on", frame_origins: "" }])
    const shown = (yield* admin.get(page)).text
    expect([shown.includes('name="plugins"'), shown.includes('name="frame"')]).toEqual([false, true])
    expect((yield* connect(admin, page, "frame")).status).toBe(200)
    expect(yield* shopRow(account)).toEqual([{ plugins: "on", frame_origins: shopOrigin }])
    expect((yield* admin.get(page)).text).not.toContain('name="frame"')
    const ten = Array.from({ length: 10 }, (_, n) => `https://s${n}.example`).join(" ")
    yield* execute("UPDATE shops SET frame_origins = ? WHERE account_id = ?", [ten, account])
    expect((yield* admin.get(page)).text).not.toContain('name="frame"')
  })

  test("without an address the key is shown once, with the store's id and the server's address", function* () {
    const { account, admin, base } = yield* openShop
    const made = yield* connect(admin, `${base}/pair?${asked({ redirect: undefined })}`)
    expect(made.status).toBe(200)
    for (const said of [/value="svc_test_\w{49}"/, new RegExp(`value="${account}-test"`), /The server’s address/]) {
      expect(made.text).toMatch(said)
    }
  })

  test("a live key is made in the live mode, after a proof that keeps what was chosen", function* () {
    const { account, admin, name } = yield* openShop
    yield* execute("UPDATE sessions SET proof_at = 0 WHERE person_id IN (SELECT id FROM people WHERE account_id = ?)", [
      account
    ])
    const page = `/portal/a/${account}/live/pair?${asked()}`
    const asks = yield* connect(admin, page)
    expect(asks.text).toContain("Is it still you?")
    expect(asks.text).toContain("connect a shop")
    expect(yield* shopRow(account)).toEqual([])
    const proof = ["proof_link", yield* newLink({ account, name: `admin of ${name}` })] as const
    const made = yield* admin.post(page, Object.fromEntries([...fieldsOf(asks.text), proof]))
    expect(made.text).toContain(`btcpay.store.canviewinvoices:${account}-live`)
    expect(valueOf(made.text, "apiKey")).toMatch(/^svc_live_/)
    expect(yield* shopRow(account)).toEqual([{ plugins: "on", frame_origins: shopOrigin }])
  })

  test("an operator chooses the account", function* () {
    const { account, base, name } = yield* openShop
    const operator = yield* somebody()
    const query = asked()
    const { headers } = yield* operator.get(`/portal/pair?${query}`)
    expect(headers["location"]).toBe(`/portal/a/default/test/pair?${query}`)
    const { text } = yield* operator.get(String(headers["location"]))
    expect(text).toMatch(new RegExp(`href="/portal/a/${account}/test/pair\\?[^"]*">${name}<`))
    expect(text).toContain('href="/portal/a/default/live/pair?')
    expect((yield* connect(operator, `${base}/pair?${query}`)).text).toContain(`:${account}-test"`)
  })

  test("a key for a plugin that takes no connection is made by hand", function* () {
    const { account, admin, base } = yield* openShop
    const { text } = yield* admin.get(`${base}/keys/new`)
    const checked = Array.from(text.matchAll(/name="pluginPermissions" value="([^"]+)" checked/g), ([, value]) => value)
    expect(checked).toEqual(commonPluginPermissions)
    const fields = new URLSearchParams({ id: valueOf(text, "id"), name: "WHMCS", preset: "plugin" })
    for (const each of commonPluginPermissions) fields.append("pluginPermissions", each)
    // Those of the API that a browser sends along count for nothing.
    fields.append("permissions", "payments:write")
    const made = yield* admin.post(`${base}/keys`, fields)
    for (const said of [/value="svc_test_\w{49}"/, new RegExp(`value="${account}-test"`), /The server’s address/]) {
      expect(made.text).toMatch(said)
    }
    expect(yield* keysOf(account)).toContainEqual({
      ...{ name: "WHMCS", mode: "test", permissions: "", plugin_permissions: commonPluginPermissions.join() }
    })
    const [, path = ""] =
      /href="([^"]*\/keys\/key_[^"]*)"[^>]*>WHMCS/.exec((yield* admin.get(`${base}/keys`)).text) ?? []
    const shown = (yield* admin.get(path)).text
    for (const said of ["shop plugin", `${account}-test`, pluginPermissionTexts["btcpay.store.canviewinvoices"]]) {
      expect(shown).toContain(said)
    }
    fields.set("id", valueOf((yield* admin.get(`${base}/keys/new`)).text, "id"))
    fields.delete("pluginPermissions")
    expect((yield* admin.post(`${base}/keys`, fields)).text).toContain("must have at least one")
  })
})
