/** The instructions for a payer, in the order of need: how much, on which network, to which address, by which code. */
import { plainAmount } from "./amounts.ts"
import { type Choice, type Code, hrefOf } from "./choice.ts"
import { LocalTime } from "./LocalTime.tsx"
import { mark } from "./moment.ts"
import { Qr } from "./Qr.tsx"
import type { Ask, CheckoutView } from "./view.ts"
import type { Wording } from "./wording.ts"

export interface AskingProps {
  readonly view: CheckoutView
  readonly ask: Ask
  readonly wording: Wording
  readonly choice: Choice
  /** Whether the remaining time is shown. */
  readonly isHurried: boolean
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
    aria-current={code === choice.code ? "true" : undefined}
  >
    {code === "payment" ? t.payCode : t.addressCode}
  </a>
)

// Some wallets mistake the token's contract in the URI for the payee: the plain address is always one step away.
const Codes = (props: AskingProps) => {
  const { ask, choice, view, wording } = props
  const { money, network, t } = wording
  return (
    <section class="codes">
      <h2 id="codes">{t.codes}</h2>
      <nav aria-labelledby="codes">
        <CodeLink {...props} code="payment" />
        <CodeLink {...props} code="address" />
      </nav>
      {choice.code === "payment" ? (
        <Qr text={ask.uri} label={`${t.payCode}: ${money(ask.due)}, ${network}`} />
      ) : (
        <Qr text={view.address} label={`${t.addressCode}: ${view.address}`} />
      )}
      <p>{choice.code === "payment" ? t.payCodeHint : t.addressCodeHint(money(ask.due))}</p>
    </section>
  )
}

const hex = (value: bigint | number): string => `0x${value.toString(16)}`
const word = (digits: string): string => digits.toLowerCase().padStart(64, "0")

/** Where the island puts the buttons of the wallets that the browser has, with the transaction they are to send. */
const Wallets = ({ ask: { chainId, contract, due }, view: { address }, wording: { t } }: AskingProps) => (
  <div
    class="wallets"
    data-chain={hex(chainId)}
    data-to={contract ?? address}
    data-value={hex(contract === undefined ? due : 0n)}
    // transfer(address,uint256), https://eips.ethereum.org/EIPS/eip-20
    data-data={contract === undefined ? "0x" : `0xa9059cbb${word(address.slice(2))}${word(due.toString(16))}`}
    data-texts={JSON.stringify(t.wallet)}
  />
)

const Deadline = ({ ask: { endsAt }, wording: { language, t } }: AskingProps) => (
  <p class="deadline">
    {t.payBy} <LocalTime at={endsAt} language={language} />
  </p>
)

const TimeLeft = ({ ask: { endsAt, shownFrom }, isHurried, wording: { t } }: AskingProps) => (
  <p class="time-left" hidden={!isHurried}>
    {t.timeLeft}{" "}
    <b data-ends={endsAt} data-from={shownFrom}>
      {mark.left}
    </b>
  </p>
)

export const Asking = (props: AskingProps) => {
  const { ask, view, wording } = props
  const { network, t } = wording
  return (
    <>
      <p class="network">
        <b>{t.onNetworkOnly(view.currency, network)}.</b> {t.warning}
      </p>
      <dl>
        <div data-copy={plainAmount(ask.due, view.decimals)} data-copy-id="copy-amount" data-copy-label={t.copyAmount}>
          <dt>{t.onNetwork(view.currency, network)}</dt>
          <dd>{wording.money(ask.due)}</dd>
        </div>
        <div data-copy={view.address} data-copy-id="copy-address" data-copy-label={t.copyAddress}>
          <dt>{t.address}</dt>
          <dd>
            <Address address={view.address} />
          </dd>
        </div>
      </dl>
      <Codes {...props} />
      <p class="open">
        <a id="open-wallet" href={ask.uri}>
          {t.openWallet}
        </a>
      </p>
      <Wallets {...props} />
      <Deadline {...props} />
      <TimeLeft {...props} />
    </>
  )
}
