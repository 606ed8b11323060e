// The page in a real browser, and each of its states as the store has it. `test/daemon/checkout.test.ts` is the whole way.
import { expect } from "@effect/vitest"
import { Chunk, Effect, Queue } from "effect"
import type { BrowserContextOptions, Page } from "playwright-core"
import { addingOf } from "../../src/Checkout/Asking.tsx"
import { testApp } from "../lib/api.ts"
import { problemsOf } from "../lib/axe.ts"
import { copied, unableToCopy, visitor } from "../lib/browser.ts"
import { injectWallet, type WalletAnswer, type WalletCall } from "../lib/injectedWallet.ts"
import { readQr } from "../lib/qr.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { testChain, testRates } from "../lib/settings.ts"
import { newPayment, usdc } from "./newPayment.ts"

const app = testApp({ chains: [testChain({ tokens: [usdc] })], rates: testRates({ USDC: "1", ETH: "2500" }) })

/** A payment, and a visitor on its page. `columns` are changed before the page is opened. */
const checkout = (columns = "", over: object = {}, options: BrowserContextOptions = {}) =>
  Effect.gen(function* () {
    const { cancel, change, origin, path, payment } = yield* newPayment(over)
    if (columns !== "") yield* change(columns)
    const { context, strayed } = yield* visitor(origin, options)
    const url = origin + path
    const open = Effect.promise(async () => {
      const page = await context.newPage()
      await page.goto(url)
      return page
    })
    return { cancel, change, context, open, payment, strayed, url }
  })

/** Shows the code of the address in place of that of the payment. */
const showAddressCode = async (page: Page) => {
  await page.getByRole("link", { name: "Address only" }).click()
  await page.getByRole("img", { name: /^Address only/ }).waitFor()
}

const code = (page: Page) => readQr(page.locator(".codes svg"))

const heading = (page: Page, text: string | RegExp) => page.getByRole("heading", { level: 1, name: text })

const ended = "ended_at = 1"
const states = {
  waiting: "",
  "waiting in the last quarter": "created_at = created_at - 3500000, expires_at = expires_at - 3500000",
  "part-paid": "status = 'detecting', amount_received = '20000000'",
  seen: "status = 'detecting', amount_received = '25000000'",
  closing: "expires_at = 1",
  paid: `status = 'confirmed', confirmed_at = 1, amount_received = '25000000', tx_hash = '0x${"ab".repeat(32)}', ${ended}`,
  expired: `status = 'expired', ${ended}`,
  cancelled: `status = 'expired', failure_reason = 'cancelled', ${ended}`,
  failed: `status = 'failed', failure_reason = 'insufficient_amount', amount_received = '7', ${ended}`
}

liveSuite(app, "the checkout page in a browser", (test, it) => {
  /** A test of one page, by who is on it. */
  const onPage = (
    title: string,
    visit: Parameters<typeof checkout>,
    look: (page: Page, at: Effect.Effect.Success<ReturnType<typeof checkout>>) => Promise<void>
  ) =>
    test(title, function* () {
      const at = yield* checkout(...visit)
      const page = yield* at.open
      yield* Effect.promise(() => look(page, at))
    })

  it.scoped.each(Object.entries(states))("has nothing that axe finds, in both colour schemes: %s", ([, columns]) =>
    Effect.gen(function* () {
      const { open, strayed } = yield* checkout(columns)
      const page = yield* open
      expect([yield* Effect.promise(() => problemsOf(page)), strayed]).toEqual([[], []])
    })
  )

  onPage("has nothing that axe finds where there is no payment", [], async (page, { url }) => {
    await page.goto(`${url.slice(0, -1)}_?lang=de`)
    expect([await page.title(), await problemsOf(page)]).toEqual(["Diese Zahlung gibt es nicht", []])
  })

  const longest = { currency: "ETH", amount: "123456789000000000000000001", merchantRef: `order ${"x".repeat(110)}` }
  onPage(
    "fits on 320 pixels with its longest amount, and in every language",
    ["", longest, { viewport: { width: 320, height: 640 } }],
    async (page, { url }) => {
      for (const language of ["en", "es", "de", "fr", "pt"]) {
        await page.goto(`${url}?lang=${language}`)
        expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(320)
      }
    }
  )

  it.scoped.each([
    ["in light colours", { colorScheme: "light" }],
    ["in dark colours", { colorScheme: "dark" }],
    ["without scripts", { javaScriptEnabled: false }]
  ] as const)("shows a code that a camera reads as exactly the payment, and one of the address: %s", ([, options]) =>
    Effect.gen(function* () {
      const { open, payment } = yield* checkout("", {}, options)
      const page = yield* open
      yield* Effect.promise(async () => {
        expect(await code(page)).toBe(payment.paymentUri)
        await showAddressCode(page)
        expect(await code(page)).toBe(payment.address)
        if (!("javaScriptEnabled" in options)) return
        expect(await page.getByText("Sending from an exchange?").isVisible()).toBe(true)
        // The address is selected as it is.
        expect(await page.locator("button").count()).toBe(0)
        await page.locator("code.address").click()
        expect(await page.evaluate(() => getSelection()?.toString())).toBe(payment.address)
      })
    })
  )

  onPage("is used with the keyboard alone", [], async (page, { context, payment }) => {
    await context.grantPermissions(["clipboard-read", "clipboard-write"])
    const clipboard = () => page.evaluate(() => navigator.clipboard.readText())
    const tabTo = async (id: string) => {
      for (let presses = 0; presses < 20; presses++) {
        await page.keyboard.press("Tab")
        if ((await page.evaluate(() => document.activeElement?.id)) === id) return
      }
      expect.fail(`${id} has no place in the order`)
    }
    await tabTo("open-wallet")
    await tabTo("copy-amount")
    await page.keyboard.press("Enter")
    await page.getByRole("status").filter({ hasText: "Copied" }).waitFor({ state: "attached" })
    expect(await clipboard()).toBe("25")
    await tabTo("copy-address")
    await page.keyboard.press("Space")
    await page.locator("#copy-address").filter({ hasText: "Copied" }).waitFor()
    expect(await clipboard()).toBe(payment.address)
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await page.getByText("Sending from an exchange?").waitFor()
    await tabTo("copy-reference")
    await tabTo("code-address")
    await page.keyboard.press("Enter")
    await page.getByRole("img", { name: /^Address only/ }).waitFor()
    expect(await page.evaluate(() => document.activeElement?.id)).toBe("code-address")
    // What was opened stays open.
    expect(await page.getByText("Sending from an exchange?").isVisible()).toBe(true)
    for (let languages = 0; languages < 2; languages++) await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await heading(page, /^Pague/).waitFor()
  })

  test("shows the end at once, announces it once, and moves the focus to it", function* () {
    const { cancel, open } = yield* checkout()
    const [page, focused] = [yield* open, yield* open]
    yield* Effect.promise(() => focused.locator("#copy-address").focus())
    yield* cancel
    yield* Effect.promise(async () => {
      const end = "This payment was cancelled"
      await heading(page, end).waitFor()
      expect(await page.title()).toBe(`${end} · 25\u00a0USDC`)
      expect(await page.getByRole("status").textContent()).toBe(end)
      await heading(focused, end).waitFor()
      expect(await focused.evaluate(() => document.activeElement?.tagName)).toBe("H1")
      expect(await focused.getByRole("status").textContent()).toBe("")
    })
  })

  test("polls where it gets no stream", function* () {
    const { cancel, context, open } = yield* checkout()
    yield* Effect.promise(() => context.route("**/events", (route) => route.fulfill({ status: 429 })))
    const page = yield* open
    yield* cancel
    yield* Effect.promise(() => heading(page, "This payment was cancelled").waitFor())
  })

  test("shows how much time is left from the start, and marks the last quarter", function* () {
    const early = yield* (yield* checkout()).open
    const late = yield* (yield* checkout(states["waiting in the last quarter"])).open
    yield* Effect.promise(async () => {
      expect(await early.locator(".time").textContent()).toMatch(/^Time left: (?:59:\d\d|1:00:00)$/)
      expect(await early.locator(".time .short").count()).toBe(0)
      expect(await late.locator(".time .short").textContent()).toMatch(/^1:[0-4]\d$/)
    })
  })

  test("copies in the old way where the clipboard refuses or is absent", function* () {
    for (const fault of ["refuses", "is absent"] as const) {
      const { context, open, payment } = yield* checkout()
      yield* Effect.promise(() => unableToCopy(context, fault))
      const page = yield* open
      yield* Effect.promise(async () => {
        for (const [id, text] of [
          ["copy-amount", "25"],
          ["copy-address", payment.address],
          ["copy-reference", payment.merchantRef]
        ]) {
          await page.locator(`#${id}`).press("Enter")
          await page.locator(`#${id}.copied`).waitFor()
          expect(await copied(context, page.url()), fault).toBe(text)
          expect(await page.evaluate(() => document.activeElement?.id)).toBe(id)
        }
        expect(await page.locator("input").count()).toBe(0)
      })
    }
  })

  test("selects the text and says so in each language where copying fails altogether", function* () {
    for (const [language, said] of Object.entries({
      en: "Selected: copy it with a long press or the keyboard.",
      es: "Seleccionado: cópielo con una pulsación larga o con el teclado.",
      de: "Markiert: bitte lange drücken oder mit der Tastatur kopieren.",
      fr: "Sélectionné : copiez-le par un appui long ou au clavier.",
      pt: "Selecionado: copie com um toque longo ou com o teclado."
    })) {
      const { context, open, payment, url } = yield* checkout("", {}, { viewport: { width: 320, height: 640 } })
      yield* Effect.promise(() => unableToCopy(context, "and the old way fail"))
      const page = yield* open
      yield* Effect.promise(async () => {
        await page.goto(`${url}?lang=${language}`)
        for (const [id, text] of [
          ["copy-amount", "25"],
          ["copy-address", payment.address]
        ]) {
          await page.locator(`#${id}`).click()
          await page
            .getByText(said)
            .nth(id === "copy-amount" ? 0 : 1)
            .waitFor()
          expect(await page.evaluate(() => getSelection()?.toString())).toBe(text)
          expect(await page.locator(`input#${id}`).getAttribute("aria-label")).toBe(said)
          expect(await page.locator(`button#${id}`).count()).toBe(0)
        }
        expect(await page.locator(".copied").count()).toBe(0)
        expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(320)
        expect(await problemsOf(page)).toEqual([])
      })
    }
  })

  const phone = { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true }

  onPage(
    "on a phone has wallet, amount, address and warning in view, and shows the code when asked",
    ["", {}, phone],
    async (page, { context, payment }) => {
      await context.grantPermissions(["clipboard-read", "clipboard-write"])
      const bottomOf = (place: string) =>
        page.locator(place).evaluate((element) => Math.round(element.getBoundingClientRect().bottom))
      const places = ["#open-wallet", "#copy-amount", "#copy-address", ".network"]
      const bottoms = await Promise.all(places.map(bottomOf))
      expect(bottoms).toEqual(bottoms.toSorted((a, b) => a - b))
      expect(bottoms.at(-1)).toBeLessThanOrEqual(640)
      expect(await page.locator(".codes svg").isVisible()).toBe(false)
      // The whole row copies.
      await page.locator("dt", { hasText: "Address" }).tap({ force: true })
      await page.locator("#copy-address.copied").waitFor()
      expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(payment.address)
      await page.getByRole("link", { name: "Show QR code" }).tap()
      await page.locator(".codes svg").waitFor()
      expect(await code(page)).toBe(payment.paymentUri)
    }
  )

  onPage(
    "says so when no wallet app opened, and while it has no connection",
    ["", {}, phone],
    async (page, { context }) => {
      await page.clock.install()
      await page.evaluate(() =>
        document.getElementById("open-wallet")?.addEventListener("click", (event) => event.preventDefault())
      )
      await page.getByRole("link", { name: "Open in a wallet app" }).tap()
      expect(await page.locator("#no-wallet").isVisible()).toBe(false)
      await page.clock.runFor(2_000)
      await page.getByText("No wallet opened?").waitFor()
      await context.setOffline(true)
      await page.getByText("No connection. Your payment is not affected").waitFor()
      await context.setOffline(false)
      await page.locator("#offline").waitFor({ state: "hidden" })
    }
  )

  const newYork = { timezoneId: "America/New_York" }
  const paidThen = states.paid.replace("confirmed_at = 1", "confirmed_at = 1900000000000")
  onPage("says when it was paid in the browser's own time zone", [paidThen, {}, newYork], (page) =>
    page.locator(".facts", { hasText: /Mar 17, 2030, 1:46.PM EDT/ }).waitFor()
  )

  const redirectUrl = "https://shop.example/thanks?order=5"

  test("leads back to the shop once it is paid while it is open, unless the payer stays", function* () {
    for (const stays of [true, false]) {
      const { change, context, open, payment, strayed } = yield* checkout("", { redirectUrl })
      yield* Effect.promise(() => context.route("**/events", (route) => route.fulfill({ status: 429 })))
      const page = yield* open
      yield* Effect.promise(() => page.clock.install())
      yield* change(states.paid)
      const logged: Array<string> = []
      yield* Effect.promise(async () => {
        await heading(page, "Paid").waitFor()
        const leaves = stays ? undefined : page.waitForEvent("requestfailed")
        if (stays) await page.getByRole("button", { name: "Stay on this page" }).click()
        expect(await page.locator(".returning").isVisible()).toBe(!stays)
        // Reported at once, before the browser requests anything.
        await page.evaluate("navigation.addEventListener('navigate', () => console.log('the page is left'))")
        page.on("console", (message) => logged.push(message.text()))
        await page.clock.runFor(60_000)
        await leaves
      })
      expect(logged.includes("the page is left")).toBe(!stays)
      expect(strayed).toEqual(stays ? [] : [`${redirectUrl}&paymentId=${payment.id}`])
    }
  })

  test("of a payment that was paid before stays, with a link to the shop", function* () {
    const { context, payment, strayed, url } = yield* checkout(states.paid, { redirectUrl })
    yield* Effect.promise(async () => {
      const page = await context.newPage()
      await page.clock.install()
      await page.goto(url)
      await page.clock.runFor(60_000)
      expect(await page.locator(".returning").isVisible()).toBe(false)
      const link = page.getByRole("link", { name: "Back to the shop" })
      expect(await link.getAttribute("href")).toBe(`${redirectUrl}&paymentId=${payment.id}`)
    })
    expect(strayed).toEqual([])
  })

  onPage("of a paid payment prints its receipt", [states.paid], async (page) => {
    await page.evaluate("window.print = () => { document.title = 'printed' }")
    await page.getByRole("button", { name: "Print the receipt" }).click()
    expect(await page.title()).toBe("printed")
    await page.emulateMedia({ media: "print" })
    expect(await page.locator("button, footer").filter({ visible: true }).count()).toBe(0)
  })

  const account = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
  const hash = `0x${"ab".repeat(32)}`

  /** A page with a wallet that answers each method so. */
  const withWallet = (answers: Readonly<Record<string, WalletAnswer>>, over: object = {}) =>
    Effect.gen(function* () {
      const { context, open, payment } = yield* checkout("", over)
      const calls = yield* Queue.unbounded<WalletCall>()
      yield* Effect.promise(() =>
        injectWallet(context, "Fox <b>", async (call) => {
          calls.unsafeOffer(call)
          return answers[call.method] ?? { code: -32601 }
        })
      )
      const page = yield* open
      const pay = Effect.promise(() => page.getByRole("button", { name: "Pay with Fox <b>" }).click())
      return { calls, page, pay, payment }
    })

  const granted = {
    eth_requestAccounts: { result: [account] },
    wallet_switchEthereumChain: { result: null },
    eth_sendTransaction: { result: hash }
  }

  const word = (digits: string) => digits.padStart(64, "0")
  it.scoped.each([
    [
      "the token on the right chain",
      {},
      ({ address, tokenContract }: { readonly address: string; readonly tokenContract: string }) => ({
        ...{ from: account, to: tokenContract, value: "0x0" },
        data: `0xa9059cbb${word(address.slice(2).toLowerCase())}${word((25_000_000).toString(16))}`
      })
    ],
    [
      "the chain's own coin to the address itself",
      { currency: "ETH", amount: "1000000000000000001" },
      ({ address }: { readonly address: string }) => ({ from: account, to: address, value: "0xde0b6b3a7640001" })
    ]
  ] as const)("has a wallet send %s, and shows the hash it got without a link", ([, over, expected]) =>
    Effect.gen(function* () {
      const { calls, page, pay, payment } = yield* withWallet(granted, over)
      yield* pay
      yield* Effect.promise(() => page.locator(".wallets code").filter({ hasText: hash }).waitFor())
      const [, chain, transaction] = Chunk.toReadonlyArray(yield* Queue.takeAll(calls))
      expect(chain?.params).toEqual([{ chainId: "0x7a69" }])
      expect(transaction?.params).toEqual([expected(payment)])
      expect(yield* Effect.promise(() => page.locator(".wallets a").count())).toBe(0)
    })
  )

  test("asks for nothing once a wallet has sent it, also when it is loaded again, unless the payer wants to", function* () {
    const { page, pay } = yield* withWallet(granted)
    yield* pay
    yield* Effect.promise(async () => {
      const asks = page.locator(".network, .codes, .rows, .open, .time, .help")
      for (const load of [() => Promise.resolve(null), () => page.reload()]) {
        await load()
        await heading(page, "Sent: waiting for the network").waitFor()
        expect(await asks.filter({ visible: true }).count()).toBe(0)
        expect(await page.getByRole("button", { name: /^Pay with/ }).count()).toBe(0)
        expect(await page.locator(".wallets code").textContent()).toBe(hash)
      }
      await page.getByRole("button", { name: "Show how to pay" }).click()
      await heading(page, /^Pay 25/).waitFor()
      expect(await asks.filter({ visible: true }).count()).toBe(6)
      await page.reload()
      await page.getByRole("button", { name: "Pay with Fox <b>" }).waitFor()
    })
  })

  test("asks for another payment of the same amount in the same tab as if nothing was sent", function* () {
    const over = { currency: "ETH", amount: "1000000000000000001" }
    const other = yield* checkout("", over)
    const { page, pay } = yield* withWallet(granted, over)
    yield* pay
    yield* Effect.promise(async () => {
      const sent = heading(page, "Sent: waiting for the network")
      await sent.waitFor()
      const first = page.url()
      await page.goto(other.url)
      await page.getByRole("button", { name: "Pay with Fox <b>" }).waitFor()
      expect(await heading(page, /^Pay 1\.0/).count()).toBe(1)
      await page.goto(first)
      await sent.waitFor()
    })
  })

  test("offers a wallet to add a public network that it does not know, and sends after that", function* () {
    const added: Array<unknown> = []
    const { calls, page, pay } = yield* withWallet({
      ...granted,
      get wallet_switchEthereumChain() {
        return added.length === 0 ? { code: 4902 } : { result: null }
      },
      get wallet_addEthereumChain() {
        added.push("once")
        return { result: null }
      }
    })
    const adding = addingOf(84532)
    // The test's chain is a local one, which no wallet can add.
    yield* Effect.promise(() =>
      page.evaluate((text) => {
        const place = document.querySelector<HTMLElement>(".wallets")
        if (place !== null) place.dataset["adding"] = text
      }, JSON.stringify(adding))
    )
    yield* pay
    yield* Effect.promise(() => page.locator(".wallets code").filter({ hasText: hash }).waitFor())
    const asked = Chunk.toReadonlyArray(yield* Queue.takeAll(calls))
    expect(asked.map(({ method }) => method)).toEqual([
      "eth_requestAccounts",
      "wallet_switchEthereumChain",
      "wallet_addEthereumChain",
      "wallet_switchEthereumChain",
      "eth_sendTransaction"
    ])
    expect(asked[2]?.params).toEqual([adding])
    expect(adding).toMatchObject({ chainId: "0x14a34", blockExplorerUrls: ["https://sepolia.basescan.org"] })
  })

  const refusals: ReadonlyArray<
    readonly [what: string, answers: Readonly<Record<string, WalletAnswer>>, said: string]
  > = [
    ["that was declined", { eth_sendTransaction: { code: 4001 } }, "Declined in Fox <b>: nothing was sent."],
    ["without the chain", { wallet_switchEthereumChain: { code: 4902 } }, "Fox <b> does not know this network."],
    ["without accounts", { eth_requestAccounts: { result: [] } }, "Fox <b> could not send the payment."]
  ]
  it.effect.each(refusals)(
    "of a wallet %s says what happened, sends nothing and may be tried again",
    ([, answers, said]) =>
      Effect.scoped(
        Effect.gen(function* () {
          const { calls, page, pay } = yield* withWallet({ ...granted, ...answers })
          yield* pay
          yield* Effect.promise(() => page.locator(".wallets p").filter({ hasText: said }).waitFor())
          yield* Queue.takeAll(calls)
          yield* pay
          expect((yield* Queue.take(calls)).method).toBe("eth_requestAccounts")
        })
      )
  )
})
