/**
 * Buttons for the wallets that the browser has (EIP-6963): each asks its wallet for the right network and has it send the
 * payment. The wallet shows what it signs; the page shows the hash that it got and links nowhere.
 */
import { createStore, type EIP6963ProviderDetail } from "mipd"
import type { Texts } from "../english.ts"
import { announce } from "./keepCurrent.ts"

/** The codes of https://eips.ethereum.org/EIPS/eip-1193 and, for a chain that the wallet does not know, EIP-3326. */
const declined = 4001
const unknownChain = 4902

interface Provider {
  readonly request: (call: { readonly method: string; readonly params?: ReadonlyArray<unknown> }) => Promise<unknown>
}

const wallets = createStore()

/** Hashes of transactions sent for a request, so that a replaced page does not ask for the same money twice. */
const sent = new Map<string, string>()

/** Stored as long as the tab lives, so that a reloaded page does not either. */
const storageKey = `sent ${location.pathname}`

const keep = (): void => {
  try {
    sessionStorage.setItem(storageKey, JSON.stringify([...sent]))
  } catch {
    // In a frame the browser may refuse storage.
  }
}

const restore = (): void => {
  try {
    for (const [ask, hash] of JSON.parse(sessionStorage.getItem(storageKey) ?? "[]")) sent.set(ask, hash)
  } catch {
    // See `keep`.
  }
}

const codeOf = (error: unknown): unknown =>
  typeof error === "object" && error !== null && "code" in error ? error.code : undefined

const send = async ({ request }: Provider, place: HTMLElement): Promise<string> => {
  const { adding, chain, data, to, value } = place.dataset
  const [from] = (await request({ method: "eth_requestAccounts" })) as ReadonlyArray<string>
  if (from === undefined) throw new Error("the wallet names no account")
  const change = () => request({ method: "wallet_switchEthereumChain", params: [{ chainId: chain }] })
  try {
    await change()
  } catch (error) {
    if (codeOf(error) !== unknownChain || adding === undefined) throw error
    await request({ method: "wallet_addEthereumChain", params: [JSON.parse(adding)] })
    await change()
  }
  const transaction = { from, to, value, ...(data === "0x" ? {} : { data }) }
  return String(await request({ method: "eth_sendTransaction", params: [transaction] }))
}

const askOf = ({ dataset: { data, value } }: HTMLElement): string => `${value} ${data}`

const named = (text: string, name: string): string => text.replace("{wallet}", () => name)

const element = <K extends keyof HTMLElementTagNameMap>(tag: K, text: string): HTMLElementTagNameMap[K] =>
  Object.assign(document.createElement(tag), { textContent: text })

/** The page's text about wallets, which persists when the page is replaced. One wallet is asked at a time. */
let status = ""
let isAsking = false

const say = (text: string): void => {
  status = text
  announce(text)
  offerWallets(document)
}

/** Has a wallet pay the request of an element. */
const payWith = async ({ info: { name }, provider }: EIP6963ProviderDetail, place: HTMLElement, t: Texts["wallet"]) => {
  if (isAsking) return
  isAsking = true
  say(named(t.confirm, name))
  try {
    sent.set(askOf(place), await send(provider as Provider, place))
    keep()
    isAsking = false
    say(t.sent)
  } catch (error) {
    isAsking = false
    const code = codeOf(error)
    say(named(code === declined ? t.declined : code === unknownChain ? t.unknownNetwork : t.failed, name))
  }
}

/** Shows the wallets in an element, or the transaction already sent for its request. */
const contentOf = (place: HTMLElement): ReadonlyArray<HTMLElement> => {
  const t = JSON.parse(place.dataset["texts"] ?? "{}") as Texts["wallet"]
  const hash = sent.get(askOf(place))
  if (hash !== undefined) {
    const line = element("p", `${t.sent} `)
    line.append(element("code", hash))
    // A wallet may abandon a sent transaction.
    const again = element("button", t.again)
    again.type = "button"
    again.addEventListener("click", () => {
      sent.delete(askOf(place))
      keep()
      status = ""
      offerWallets(document)
    })
    return [line, element("p", t.note), again]
  }
  const buttons = wallets.getProviders().map((wallet) => {
    const button = element("button", named(t.pay, wallet.info.name))
    button.type = "button"
    button.id = `wallet-${wallet.info.rdns}`
    button.setAttribute("aria-disabled", String(isAsking))
    button.addEventListener("click", () => void payWith(wallet, place, t))
    return button
  })
  return status === "" ? buttons : [...buttons, element("p", status)]
}

/** Once sent, the page hides its request until the money is seen. */
const hideAsk = (place: HTMLElement): void => {
  const main = place.closest("main")
  const heading = main?.querySelector("h1")
  if (!main || !heading) return
  heading.dataset["asked"] ??= heading.textContent ?? ""
  const isSent = sent.has(askOf(place))
  const { waiting } = JSON.parse(place.dataset["texts"] ?? "{}") as Texts["wallet"]
  main.classList.toggle("sent", isSent)
  const { asked = "" } = heading.dataset
  heading.textContent = isSent ? waiting : asked
  document.title = isSent ? document.title.replace(asked, () => waiting) : document.title.replace(waiting, () => asked)
}

/** Shows the wallets in the page's elements for them; later announcements are added. */
export const offerWallets = (within: ParentNode): void => {
  const place = within.querySelector<HTMLElement>(".wallets")
  if (place === null) return
  const focused = place.contains(document.activeElement) ? document.activeElement?.id : undefined
  place.replaceChildren(...contentOf(place))
  hideAsk(place)
  if (focused !== undefined && focused !== "") document.getElementById(focused)?.focus()
}

restore()
wallets.subscribe(() => offerWallets(document))
