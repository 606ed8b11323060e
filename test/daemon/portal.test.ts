import { expect } from "@effect/vitest"
import { Effect } from "effect"
import type { Page } from "playwright-core"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import { makeClient } from "../lib/api.ts"
import { problemsOf } from "../lib/axe.ts"
import { visitor } from "../lib/browser.ts"
import { homeOn, serveHere } from "../lib/daemon.ts"
import { makeInbox } from "../lib/inbox.ts"
import { linkBySocket } from "../lib/portal.ts"
import { liveTest } from "../lib/scopedTest.ts"

/** Works on the page, in the browser. */
const browse = <A>(work: () => Promise<A>) => Effect.promise(work)

/** Opens a section by its link, which may be among those of developers, folded. */
const open = (page: Page, section: string) =>
  browse(async () => {
    const sections = page.getByRole("navigation", { name: "Sections" })
    const link = sections.getByRole("link", { name: section })
    if (!(await link.isVisible())) await sections.getByText("Developers").click()
    await link.click()
  })

liveTest("a person signs in, creates a key, and repairs a failing receiver", function* () {
  const inbox = yield* makeInbox({
    behaviour: ({ path }) => (path === "/broken" ? { status: 500, body: "the shelf is <b>full</b>" } : 204)
  })
  const { home } = yield* homeOn("base", { caFile: inbox.caFile })
  const daemon = yield* serveHere(home)
  const { context, strayed } = yield* visitor(daemon.url)
  const page = yield* browse(() => context.newPage())

  yield* Effect.flatMap(linkBySocket(home), (path) => browse(() => page.goto(`${daemon.url}${path}`)))
  yield* browse(() => page.getByRole("button", { name: /sign in/i }).click())

  yield* open(page, "API keys")
  yield* browse(async () => {
    await page.getByRole("link", { name: "Create a key" }).click()
    await page.getByLabel("Name").fill("shop server")
    await page.getByRole("button", { name: "Create the key" }).click()
  })
  const key = yield* browse(() => page.getByLabel("The key").inputValue())
  expect(yield* browse(() => problemsOf(page))).toEqual([])
  expect(yield* browse(() => page.getByRole("button", { name: "Copy" }).isVisible())).toBe(true)

  yield* open(page, "Webhooks")
  yield* browse(async () => {
    await page.getByRole("link", { name: "Add an endpoint" }).click()
    await page.getByLabel("URL").fill(`${inbox.url}/broken`)
    await page.getByRole("button", { name: "Add the endpoint" }).click()
    await page.getByRole("heading", { name: "The endpoint is added" }).waitFor()
    expect(await page.getByLabel("Signing secret").inputValue()).toMatch(/^whsec_/)
    expect(await problemsOf(page)).toEqual([])
    await page.getByRole("link", { name: "I have kept it: to the endpoint" }).click()
    await page.getByRole("heading", { name: "Webhook endpoint" }).waitFor()
  })
  const call = yield* makeClient(daemon.url)
  const created = yield* call("POST", "/v1/payments", {
    key,
    json: { merchantRef: "order 1", amount: "1000000", currency: "USDC", chain: "base" }
  })
  expect(created.status).toBe(201)
  const payment = created.body as PaymentObject
  yield* inbox.take("/broken", payment, "payment.created")

  // The attempt is stored after its answer: the page is opened until it shows.
  yield* browse(async () => {
    do await page.goto(`${daemon.url}/portal/a/default/test/deliveries?status=failing`)
    while ((await page.getByRole("link", { name: "payment.created" }).count()) === 0)
    await page.getByRole("link", { name: "payment.created" }).click()
  })
  const shown = yield* browse(() => page.getByRole("main").textContent())
  expect(shown).toContain("Attempt 1: 500")
  expect(shown).toContain("the shelf is <b>full</b>")
  expect(shown).toContain(`"id":"${payment.id}"`)
  const delivery = page.url()

  yield* open(page, "Webhooks")
  yield* browse(async () => {
    await page.getByRole("link", { name: `${inbox.url}/broken` }).click()
    await page.getByLabel("URL").fill(`${inbox.url}/mended`)
    await page.getByRole("button", { name: "Change", exact: true }).click()
    await page.getByRole("button", { name: "Send a test" }).click()
    await page.getByText("The test message arrived: 204").waitFor()
    await page.goto(delivery)
    await page.getByRole("button", { name: "Send it again" }).click()
    await page.getByText("1 sent again: the answer shows here in a moment.").waitFor()
  })
  yield* inbox.take("/mended", payment, "payment.created")
  yield* browse(async () => {
    do await page.goto(delivery)
    while ((await page.getByText("Attempt 2: 204, sent by hand").count()) === 0)
    await page.getByText("delivered", { exact: true }).waitFor()
  })
  expect(strayed).toEqual([])
})
