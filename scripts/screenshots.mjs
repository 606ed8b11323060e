// Pictures of every page and state, on a desktop and a phone, in light and dark, in the folder .screenshots. Runs the
// sandbox, which needs its ports: npm run screenshots [-- WORD …] takes only pictures whose names contain a word, and
// npm run screenshots -- --readme those of README and docs, in docs/pictures.
import { spawn, spawnSync } from "node:child_process"
import { mkdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { chromium } from "playwright-core"
import "./typescript.mjs"

const root = fileURLToPath(new URL("..", import.meta.url))
const tilld = join(root, "dist/tilld.js")
const folder = join(root, ".screenshots")
const words = process.argv.slice(2)
const forReadme = words.includes("--readme")

// A payment on optimism stays between seen and confirmed while its pictures are taken.
const env = {
  ...process.env,
  TILLD_CHAINS__OPTIMISM__TEST__CONFIRMATIONS: forReadme ? "12" : "600",
  // It asks twice a second for what it waits for.
  TILLD_LIMITS__PER_MINUTE: "10000",
  TILLD_LIMITS__PER_HOUR: "100000"
}
const sandbox = spawn(process.execPath, [tilld, "sandbox"], { cwd: root, env, stdio: ["ignore", "pipe", "inherit"] })
let output = ""
await new Promise((resolve, reject) => {
  sandbox.stdout.on("data", (bytes) => {
    output += bytes
    if (output.includes("Ctrl-C stops everything")) resolve()
  })
  sandbox.on("close", (code) => reject(new Error(`the sandbox ended with ${code}`)))
})
const [, key] = /test key {2}(\S+)/.exec(output)
const [, portal] = /portal {4}(\S+)/.exec(output)
const origin = new URL(portal).origin

const call = async (path, body) => {
  const headers = { "x-api-key": key, "content-type": "application/json" }
  const method = body === undefined ? "GET" : "POST"
  const response = await fetch(`${origin}/v1${path}`, { method, headers, body: JSON.stringify(body) })
  const answer = await response.json()
  if (!response.ok) throw new Error(`${path}: ${JSON.stringify(answer)}`)
  return answer
}

let orders = 0
const payment = (over = {}) =>
  call("/payments", { merchantRef: `order-${++orders}`, amount: "49900000", currency: "USDC", chain: "base", ...over })

const pay = (id, ...options) => {
  const { status, stderr } = spawnSync(process.execPath, [tilld, "sandbox", "pay", id, ...options], {
    cwd: root,
    encoding: "utf8"
  })
  if (status !== 0) throw new Error(stderr)
}

/** Waits until the payment has a status. */
const until = async (id, status) => {
  for (;;) {
    const found = await call(`/payments/${id}`)
    if (found.status === status) return found
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
}

const phone = { deviceScaleFactor: 2, isMobile: true, hasTouch: true }
const looks = [
  { name: "desktop-light", options: { viewport: { width: 1280, height: 900 }, colorScheme: "light" } },
  { name: "desktop-dark", options: { viewport: { width: 1280, height: 900 }, colorScheme: "dark" } },
  {
    name: "phone-light",
    options: { viewport: { width: 360, height: 740 }, colorScheme: "light", ...phone }
  },
  { name: "phone-dark", options: { viewport: { width: 360, height: 740 }, colorScheme: "dark", ...phone } }
]

const { launchOptions } = await import("../test/lib/browserPlace.ts")
const browser = await chromium.launch(launchOptions())
const contexts = []
for (const look of looks)
  contexts.push({ ...look, context: await browser.newContext({ locale: "en-US", ...look.options }) })

let taken = 0

/** What README and docs show: small, in one look; a phone's in that of a phone. */
const shown = {
  "checkout-phone": [360, 740],
  "checkout-waiting": [420, 800],
  "checkout-seen": [420, 440],
  "checkout-choosing": [420, 560],
  "plugin-pairing": [680, 760],
  "portal-home": [900, 500],
  "portal-payment": [760, 420]
}
const pictures = join(root, "docs/pictures")
const readmePicture = async (name, url) => {
  const [width, height] = shown[name] ?? []
  if (width === undefined) return
  const page = await contexts[0].context.newPage()
  await page.setViewportSize({ width, height })
  await page.goto(url, { waitUntil: "load" })
  await page.screenshot({ path: join(pictures, `${name}.png`) })
  await page.close()
  taken++
}

const picture = async (name, url) => {
  if (forReadme) return readmePicture(name, url)
  if (words.length > 0 && !words.some((word) => name.includes(word))) return
  for (const { context, name: look } of contexts) {
    const page = await context.newPage()
    await page.goto(url, { waitUntil: "load" })
    await page.screenshot({ path: join(folder, `${name}-${look}.png`), fullPage: true })
    await page.close()
    taken++
  }
}

try {
  if (!forReadme) rmSync(folder, { recursive: true, force: true })
  mkdirSync(forReadme ? pictures : folder, { recursive: true })
  const { context: first } = contexts[0]
  const page = await first.newPage()
  await page.goto(portal)
  await page.click("main button")
  const home = page.url()
  await page.goto(`${home}/settings`)
  for (const [label, text] of Object.entries({
    Name: "Corner shop",
    "Accent colour": "#13703f",
    Website: "https://shop.example",
    Contact: "help@shop.example"
  })) {
    await page.getByLabel(label, { exact: true }).fill(text)
  }
  await page.getByRole("button", { name: "Save" }).click()
  await page.goto(`${home}/me`)
  await page.getByLabel("Sign-in name").fill("ada")
  await page.getByRole("textbox", { name: "Password" }).fill("correct horse battery")
  await page.getByRole("button", { name: "Set a password" }).click()
  await page.waitForLoadState("load")
  const cookies = await first.cookies()
  for (const { context } of contexts.slice(1)) await context.addCookies(cookies)
  const links = await page.$$eval("nav a", (links) => links.map(({ href }) => href))
  const sections = links.filter((href) => href.startsWith(home) && !href.includes("#"))
  await page.close()
  const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`
  await call("/webhooks", {
    url: "https://127.0.0.1:9/hooks",
    events: ["payment.created", "payment.confirmed"],
    secret
  })

  // These two take two minutes to end.
  const expiring = await payment({ expiresIn: 60 })
  const failing = await payment({ expiresIn: 60 })
  pay(failing.id, "--part", "half")

  const waiting = await payment()
  await picture("checkout-waiting", waiting.checkoutUrl)
  if (forReadme) await picture("checkout-phone", waiting.checkoutUrl)
  const price = {
    price: { amount: "49.90", currency: "EUR" },
    currencies: ["USDC-base", "USDC-polygon", "ETH-ethereum"]
  }
  const invoice = await call("/invoices", price)
  await picture("checkout-choosing", invoice.checkoutUrl)
  const native = { amount: "20000000000000000", currency: "ETH", chain: "ethereum" }
  await picture("checkout-waiting-german", `${(await payment(native)).checkoutUrl}?lang=de`)
  const cancelled = await payment()
  await call(`/payments/${cancelled.id}/cancel`, {})
  await picture("checkout-cancelled", cancelled.checkoutUrl)
  const part = await payment()
  pay(part.id, "--part", "half")
  await until(part.id, "detecting")
  await picture("checkout-part-paid", part.checkoutUrl)
  const seen = await payment({ chain: "optimism" })
  pay(seen.id)
  await until(seen.id, "detecting")
  await picture("checkout-seen", seen.checkoutUrl)
  const paid = await payment()
  pay(paid.id, "--part", "more")
  await until(paid.id, "confirmed")
  await picture("checkout-paid", paid.checkoutUrl)

  for (const href of sections) {
    await picture(`portal-${href.slice(home.length + 1).replaceAll("/", "-") || "home"}`, href)
  }
  await picture("portal-payment", `${home}/payments/${paid.id}`)
  await picture("portal-payment-new", `${home}/payments/new`)
  await picture("portal-me", `${home}/me`)
  const asked = ["canviewinvoices", "cancreateinvoice", "canviewstoresettings", "canmodifyinvoices"]
  const permissions = [...asked, "webhooks.canmodifywebhooks"].map((name) => `permissions=btcpay.store.${name}`)
  const redirect = encodeURIComponent("https://shop.example/?btcpay-settings-callback")
  const shop = `applicationName=Corner%20shop&strict=true&selectiveStores=true&redirect=${redirect}`
  await picture("plugin-pairing", `${home}/pair?${permissions.join("&")}&${shop}`)
  await picture("portal-nothing-found", `${home}/payments?q=nothing-like-that`)
  await picture("portal-not-found", `${home}/payments/pay_none`)
  await picture("portal-empty", `${home.replace(/test$/, "live")}/payments`)
  await picture("portal-key-new", `${home}/keys/new`)
  await picture("portal-delivery-filtered", `${home}/deliveries?status=failing`)

  if (!forReadme) {
    await until(expiring.id, "expired")
    await picture("checkout-expired", expiring.checkoutUrl)
    await until(failing.id, "failed")
    await picture("checkout-failed", failing.checkoutUrl)
    await picture("checkout-not-found", `${origin}/pay/nothing`)
  }
  console.log(`${taken} pictures`)
} finally {
  await browser.close()
  sandbox.removeAllListeners("close")
  sandbox.kill("SIGTERM")
}
