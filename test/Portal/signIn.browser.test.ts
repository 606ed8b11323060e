import { expect } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { type CDPSession, chromium, type Page } from "playwright-core"
import { TestApi, testApp } from "../lib/api.ts"
import { problemsOf } from "../lib/axe.ts"
import { visitor } from "../lib/browser.ts"
import { launchOptions } from "../lib/browserPlace.ts"
import { freePort } from "../lib/loopback.ts"
import { bring, newLink, signIn } from "../lib/portal.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { testSettings } from "../lib/settings.ts"
import { execute, rows } from "../lib/store.ts"

/** Passkeys are for one origin, which the configuration names. */
const app = Layer.unwrapEffect(
  Effect.map(freePort, (port) =>
    testApp({ server: { ...testSettings("").server, port, publicUrl: `http://localhost:${port}` } })
  )
)

const me = "/portal/a/default/test/me"

/** An authenticator of this device that knows its user. */
const authenticator = async (page: Page): Promise<{ readonly cdp: CDPSession; readonly id: string }> => {
  const cdp = await page.context().newCDPSession(page)
  await cdp.send("WebAuthn.enable")
  const { authenticatorId: id } = await cdp.send("WebAuthn.addVirtualAuthenticator", {
    options: {
      protocol: "ctap2",
      transport: "internal",
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true
    }
  })
  return { cdp, id }
}

const makePasskey = async (page: Page, name: string) => {
  await page.getByLabel("Name").fill(name)
  await page.getByRole("button", { name: "Make a passkey" }).click()
  await page.getByRole("rowheader", { name }).waitFor()
}

/** On the home page, which asks for no other way in. */
const isAtHome = async (page: Page) => {
  await page.getByRole("heading", { name: "Needs your attention" }).waitFor()
  expect(await page.getByText("You have neither a password nor a passkey").count()).toBe(0)
}

const signOut = async (page: Page) => {
  await page.locator(".person summary").click()
  await page.getByRole("button", { name: "Sign out" }).click()
}

/** A browser at the portal, signed in as `name` where one is given. */
const at = (name?: string, options: Parameters<typeof visitor>[1] = {}) =>
  Effect.gen(function* () {
    const { host, port } = yield* TestApi
    const url = `http://localhost:${port}`
    const { context, strayed } = yield* visitor(url, options)
    if (name !== undefined) yield* bring(yield* signIn({ host, port }, { name }), context, url)
    const page = yield* Effect.promise(() => context.newPage())
    return { url, page, strayed, go: (path: string) => page.goto(`${url}${path}`) }
  })

liveSuite(app, "the portal in a browser", (test) => {
  test("a passkey is made, signs in, proves who it is, and its answer works once", function* () {
    const { go, page, strayed, url } = yield* at("Ada")
    const posted: Array<string> = []
    page.on("request", (request) => posted.push(request.postData() ?? ""))
    yield* Effect.promise(async () => {
      await authenticator(page)
      await go(`${me}/passkeys/new`)
      await makePasskey(page, "Ada's laptop")
      await signOut(page)
      await page.getByRole("button", { name: "Sign in with a passkey" }).click()
      await page.waitForURL(`${url}/portal/a/default/test`)
      await isAtHome(page)
      await go(me)
      expect(await page.getByRole("heading", { level: 1 }).textContent()).toBe("Ada")
    })
    expect(yield* rows("SELECT name FROM passkeys WHERE counter > 0 AND last_used_at > 0")).toHaveLength(1)

    // The same answer again: its challenge was taken.
    const answer = posted.find((body) => body.startsWith("passkey=") || body.includes("&passkey="))
    const { call } = yield* TestApi
    const replayed = yield* call("POST", "/portal/sign-in", {
      headers: { "content-type": "application/x-www-form-urlencoded", origin: url },
      body: answer ?? ""
    })
    expect(replayed).toMatchObject({ status: 403, text: expect.stringContaining("This passkey did not sign you in") })

    yield* execute("UPDATE sessions SET proof_at = 0")
    yield* Effect.promise(async () => {
      await go(`${me}/passkeys/new`)
      await page.getByRole("button", { name: "Use a passkey" }).click()
      await page.getByRole("heading", { name: "New passkey" }).waitFor()
    })
    expect(strayed).toEqual([])
  })

  test("a passkey that does not verify its user signs no one in", function* () {
    const { go, page } = yield* at("Grace")
    yield* Effect.promise(async () => {
      const { cdp, id } = await authenticator(page)
      await go(`${me}/passkeys/new`)
      await makePasskey(page, "key")
      await signOut(page)
      await cdp.send("WebAuthn.setUserVerified", { authenticatorId: id, isUserVerified: false })
      await page.getByRole("button", { name: "Sign in with a passkey" }).click()
      await page.getByText("The passkey was not used").waitFor()
      expect(await page.context().cookies()).toEqual([])
    })
  })

  test("after signing out the back button shows nothing of before", function* () {
    const { host, port } = yield* TestApi
    const url = `http://localhost:${port}`
    // As people use it: Playwright turns both of a browser's caches off, where it routes requests and by an option.
    const launched = yield* Effect.acquireRelease(
      Effect.promise(() =>
        chromium.launch({
          ...launchOptions(),
          ignoreDefaultArgs: ["--disable-back-forward-cache"]
        })
      ),
      (each) => Effect.promise(() => each.close())
    )
    const context = yield* Effect.promise(() => launched.newContext())
    yield* bring(yield* signIn({ host, port }, { name: "Ada" }), context, url)
    yield* Effect.promise(async () => {
      const page = await context.newPage()
      await page.goto(`${url}${me}`)
      await page.goto(`${url}/portal/a/default/test/people`)
      await signOut(page)
      await page.waitForURL(`${url}/portal/sign-in`)
      for (const _ of [1, 2]) {
        await page.evaluate("history.back()")
        await page.getByRole("heading", { name: "Sign in" }).waitFor()
        expect(await page.getByText("Invite somebody").count()).toBe(0)
      }
    })
  })

  test("without JavaScript: a link, a password, a proof, an invitation, and out", function* () {
    const { go, page, url } = yield* at(undefined, { javaScriptEnabled: false })
    const link = yield* newLink({ name: "Nora" })
    yield* Effect.promise(async () => {
      await go(link)
      await page.getByRole("button", { name: "Sign in" }).click()
      await page.waitForURL(`${url}/portal/a/default/test`)
      await go(me)
      await page.getByLabel("Sign-in name").fill("nora")
      await page.getByRole("textbox", { name: "Password" }).fill("correct horse battery")
      await page.getByRole("button", { name: "Set a password" }).click()
      await page.getByRole("button", { name: "Change the password" }).waitFor()
      await go("/portal/a/default/test/people")
      await page.getByLabel("Name").fill("Vera")
    })
    yield* execute("UPDATE sessions SET proof_at = 0")
    yield* Effect.promise(async () => {
      await page.getByRole("button", { name: "Create a link" }).click()
      await page.getByRole("heading", { name: "Is it still you?" }).waitFor()
      await page.getByRole("textbox", { name: "Password" }).fill("correct horse battery")
      await page.getByRole("button", { name: "Go on" }).click()
      await page.getByText("Hand this link to Vera").waitFor()
      await signOut(page)
      await page.getByLabel("Sign-in name").fill("nora")
      await page.getByRole("textbox", { name: "Password" }).fill("correct horse battery")
      await page.getByRole("button", { name: "Sign in" }).click()
      await page.waitForURL(`${url}/portal/a/default/test`)
      await isAtHome(page)
    })
  })

  test("the pages before signing in, and that which asks for a proof, are cards in the middle", function* () {
    const { go, page } = yield* at()
    const isCard = async () => {
      const { background, bottom, left, padding, right } = await page.locator("main").evaluate((main) => {
        const { backgroundColor, borderBottomWidth, paddingLeft } = getComputedStyle(main)
        const { left, right } = main.getBoundingClientRect()
        return {
          background: backgroundColor,
          bottom: borderBottomWidth,
          left,
          padding: paddingLeft,
          right: innerWidth - right
        }
      })
      expect(Math.abs(left - right)).toBeLessThan(2)
      expect(left).toBeGreaterThan(100)
      expect([bottom, padding, background]).toEqual(["1px", "32px", expect.not.stringContaining("rgba(0, 0, 0, 0)")])
    }
    const link = yield* newLink({ name: "Cara" })
    yield* Effect.promise(async () => {
      await page.setViewportSize({ width: 1280, height: 900 })
      await go("/portal/sign-in")
      await isCard()
      await go(link)
      await isCard()
      await page.getByRole("button", { name: "Sign in" }).click()
      await page.getByText("You have neither a password nor a passkey").waitFor()
    })
    yield* execute("UPDATE sessions SET proof_at = 0")
    yield* Effect.promise(async () => {
      await go("/portal/a/default/test/me/passkeys/new")
      await page.getByRole("heading", { name: "Is it still you?" }).waitFor()
      await isCard()
    })
  })

  test("of two clicks on a button only the first sends the form: its answer is what is seen", function* () {
    const { go, page } = yield* at("Ada")
    yield* Effect.promise(async () => {
      await go("/portal/a/default/test/keys/new")
      await page.getByLabel("Name", { exact: true }).fill("twice")
      const sent: Array<string> = []
      page.on("request", (request) => request.method() === "POST" && sent.push(request.url()))
      await page.getByRole("button", { name: "Create the key" }).dblclick()
      await page.getByLabel("The key").waitFor()
      expect(sent).toHaveLength(1)
      // A page that the browser has kept and shows again sends its form again.
      await go("/portal/a/default/test/keys/new")
      await page.route("**/keys", (route) => route.fulfill({ status: 204 }))
      sent.length = 0
      const button = page.getByRole("button", { name: "Create the key" })
      for (const _ of [1, 2]) await button.click()
      await page.evaluate('dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true }))')
      await button.click()
      expect(sent).toHaveLength(2)
    })
  })

  test("axe finds nothing on the pages of a person, nor on those before signing in", function* () {
    const { go, page, strayed } = yield* at("Ada")
    const problems: Array<unknown> = []
    const look = (...paths: ReadonlyArray<string>) =>
      Effect.promise(async () => {
        for (const path of paths) {
          await go(path)
          problems.push(...(await problemsOf(page)).map((problem) => [path, problem]))
        }
      })
    yield* Effect.promise(() => authenticator(page))
    yield* look(me, `${me}/passkeys/new`)
    yield* execute("UPDATE sessions SET proof_at = 0")
    // It asks for a proof now.
    yield* look(`${me}/passkeys/new`)
    yield* Effect.promise(() => page.context().clearCookies())
    yield* look(yield* newLink({ name: "Eve" }), "/portal/sign-in")
    expect([problems, strayed]).toEqual([[], []])
  })
})
