/**
 * The instructions for a payer, in the order of need: the wallet, how much, to which address, by which code. On a phone the
 * code is folded, since a phone cannot scan itself; on a wide page it stands before them.
 */

import { correction, generate } from "lean-qr"
import { toSvgPath } from "lean-qr/extras/svg"
import { BoundedMap } from "../lib/BoundedMap.ts"
import { explorerOf } from "../Pages/explorers.ts"
import { Disc, Mark } from "../Pages/marks.tsx"
import { ContactLink, type Shown } from "./Extras.tsx"
import { type Code, hrefOf } from "./languages.ts"
import { mark } from "./RenderedPages.ts"
import type { Ask } from "./view.ts"
import { lengthOf, plainAmount, type Wording } from "./wording.ts"

/** The quiet zone that the standard asks for, in modules (ISO/IEC 18004, 5.3.8). */
const quietZone = 4

interface QrProps {
  readonly text: string
  /** Alternative text. */
  readonly label: string
}

interface Drawn {
  readonly size: number
  readonly path: string
}

/** Codes by their text: making one takes half of a page's time, and pages in other languages share it. */
const drawn = new BoundedMap<string, Drawn>(500)

const draw = (text: string): Drawn => {
  const code = generate(text, { minCorrectionLevel: correction.M })
  return { size: code.size, path: toSvgPath(code) }
}

/** A QR code, black on white in both colour schemes: many cameras do not read the reverse. */
const Qr = ({ label, text }: QrProps) => {
  const { path, size } = drawn.get(text) ?? draw(text)
  drawn.set(text, { path, size })
  const side = size + 2 * quietZone
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox={`${-quietZone} ${-quietZone} ${side} ${side}`}
      shape-rendering="crispEdges"
    >
      <rect x={-quietZone} y={-quietZone} width={side} height={side} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  )
}

const ether = { name: "Ether", symbol: "ETH", decimals: 18 } as const
const pol = { name: "POL", symbol: "POL", decimals: 18 } as const

/** What a wallet needs to add a public network (EIP-3085), by chain id. The RPC URLs are from each network's documentation. */
const networks = new Map<number, readonly [name: string, coin: typeof ether | typeof pol, rpcUrl: string]>([
  [137, ["Polygon", pol, "https://polygon-rpc.com"]],
  [80002, ["Polygon Amoy", pol, "https://rpc-amoy.polygon.technology"]],
  [42161, ["Arbitrum One", ether, "https://arb1.arbitrum.io/rpc"]],
  [421614, ["Arbitrum Sepolia", ether, "https://sepolia-rollup.arbitrum.io/rpc"]],
  [10, ["OP Mainnet", ether, "https://mainnet.optimism.io"]],
  [11155420, ["OP Sepolia", ether, "https://sepolia.optimism.io"]],
  [8453, ["Base", ether, "https://mainnet.base.org"]],
  [84532, ["Base Sepolia", ether, "https://sepolia.base.org"]]
])

/** The parameter of `wallet_addEthereumChain`; undefined for a chain that has no public network. */
export const addingOf = (chainId: number) => {
  const [chainName, nativeCurrency, rpcUrl] = networks.get(chainId) ?? []
  if (chainName === undefined) return undefined
  const explorer = explorerOf(chainId)
  return {
    chainId: `0x${chainId.toString(16)}`,
    ...{ chainName, nativeCurrency },
    rpcUrls: [rpcUrl],
    ...(explorer === undefined ? {} : { blockExplorerUrls: [explorer] })
  }
}

interface AskingProps extends Shown {
  readonly ask: Ask
}

const groupsOfFour = (address: string): ReadonlyArray<string> =>
  Array.from({ length: 10 }, (_, i) => (i === 0 ? address.slice(0, 6) : address.slice(4 * i + 2, 4 * i + 6)))

/** In groups for easy comparison, without spaces in the text: a selection copies the address itself. */
const Address = ({ address }: { readonly address: string }) => (
  <code class="address">
    {groupsOfFour(address).map((group) => (
      <span key={group}>{group}</span>
    ))}
  </code>
)

/** The link to one of the codes; the island shows it in place. */
const CodeLink = ({ choice, code, wording: { t } }: AskingProps & { readonly code: Code }) => (
  <a
    id={`code-${code}`}
    href={hrefOf({ ...choice, code })}
    data-in-place
    aria-current={code === (choice.code ?? "payment") ? "true" : undefined}
  >
    {code === "payment" ? t.payCode : t.addressCode}
  </a>
)

// Some wallets mistake the token's contract in the URI for the payee: the plain address is always one step away.
export const Codes = (props: AskingProps) => {
  const { ask, choice, view, wording } = props
  const { money, network, t } = wording
  return (
    <section class={choice.code === undefined ? "codes folded" : "codes"}>
      <a class="button quiet unfold" id="show-code" href={hrefOf({ ...choice, code: "payment" })} data-in-place>
        {t.showCode}
      </a>
      {choice.code === "address" ? (
        <Qr text={view.address} label={`${t.addressCode}: ${view.address}`} />
      ) : (
        <Qr text={ask.uri} label={`${t.payCode}: ${money(ask.due)}, ${network}`} />
      )}
      <nav aria-label={t.codes}>
        <CodeLink {...props} code="payment" />
        <CodeLink {...props} code="address" />
      </nav>
      <p>{choice.code === "address" ? t.addressCodeHint : t.payCodeHint}</p>
    </section>
  )
}

const hex = (value: bigint | number): string => `0x${value.toString(16)}`
const word = (digits: string): string => digits.toLowerCase().padStart(64, "0")

/** Where the island puts the buttons of the wallets that the browser has, with the transaction they are to send. */
const Wallets = ({ ask: { chainId, contract, due }, view: { address }, wording: { t } }: AskingProps) => {
  const adding = addingOf(chainId)
  return (
    <div
      class="wallets"
      data-chain={hex(chainId)}
      data-adding={adding && JSON.stringify(adding)}
      data-to={contract ?? address}
      data-value={hex(contract === undefined ? due : 0n)}
      // transfer(address,uint256), https://eips.ethereum.org/EIPS/eip-20
      data-data={contract === undefined ? "0x" : `0xa9059cbb${word(address.slice(2))}${word(due.toString(16))}`}
      data-texts={JSON.stringify(t.wallet)}
    />
  )
}

/** The smallest amount is said where a payer reads it at a glance: this many characters. */
const mostLeast = 8

/** What few payers need. */
const Help = (props: AskingProps) => {
  const { ask, look, view, wording } = props
  const { money, t } = wording
  return (
    <details class="help">
      <summary>{t.help}</summary>
      {ask.least === undefined || plainAmount(ask.least, view.decimals).length > mostLeast ? null : (
        <p>{t.least(money(ask.least))}</p>
      )}
      <p>
        {t.alreadySent} {look.contact && <ContactLink {...props} text={t.contactShop(look.name)} />}
      </p>
    </details>
  )
}

/** @param t its texts; times in Unix milliseconds */
export const TimeLeft = ({ endsAt, startsAt, t }: Pick<Ask, "startsAt" | "endsAt"> & Pick<Wording, "t">) => (
  <p class="time">
    {t.timeLeft}{" "}
    <b data-ends={endsAt} data-starts={startsAt}>
      {mark.left}
    </b>
  </p>
)

export const Asking = (props: AskingProps) => {
  const { ask, view, wording } = props
  const { money, network, t } = wording
  return (
    <>
      <TimeLeft {...ask} t={t} />
      <p class="open">
        <a id="open-wallet" class="button" href={ask.uri}>
          <Mark of="wallet" /> {t.openWallet}
        </a>
      </p>
      <p id="no-wallet" hidden>
        {t.noWallet}
      </p>
      <noscript>
        <p>{t.noWallet}</p>
      </noscript>
      <Wallets {...props} />
      <dl class="rows">
        <div data-copy={plainAmount(ask.due, view.decimals)} data-copy-id="copy-amount">
          <dt>{t.amount}</dt>
          <dd class={lengthOf(money(ask.due))}>
            <span>
              <Disc of={view.currency} /> {money(ask.due)}
            </span>
          </dd>
        </div>
        <div data-copy={view.address} data-copy-id="copy-address">
          <dt>{t.address}</dt>
          <dd>
            <Address address={view.address} />
          </dd>
        </div>
      </dl>
      <p class="network">
        <b>{t.onNetworkOnly(view.currency, network)}.</b> {t.warning}
      </p>
      <p class="exchange">{t.exchange(network, money(ask.due))}</p>
      <Help {...props} />
    </>
  )
}
