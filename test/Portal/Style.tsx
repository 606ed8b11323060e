/** Every component of the portal in every state. Its data is fixed. */
import { Redacted } from "effect"
import type { ComponentChildren } from "preact"
import { defaultAccount } from "../../src/Auth.ts"
import { type ChainName, chainNames } from "../../src/Domain/Chain.ts"
import { PersonId, SessionId } from "../../src/Domain/Ids.ts"
import { Disc, discNames, Mark, markNames } from "../../src/Pages/marks.tsx"
import { Chips } from "../../src/Portal/components/Chips.tsx"
import { Confirm } from "../../src/Portal/components/Confirm.tsx"
import { CopyField, CopyText } from "../../src/Portal/components/CopyText.tsx"
import { Bars, StackedBars } from "../../src/Portal/components/chart.tsx"
import {
  Act,
  blank,
  Checks,
  FilterProblems,
  Filters,
  type FormState,
  PostForm,
  Radios,
  Select,
  TextArea,
  TextField
} from "../../src/Portal/components/Form.tsx"
import { NewSecret } from "../../src/Portal/components/NewSecret.tsx"
import { type Column, Facts, Paging, Table } from "../../src/Portal/components/Table.tsx"
import {
  Chain,
  fiatText,
  Money,
  Notice,
  OnChain,
  Status,
  statusTones,
  Time
} from "../../src/Portal/components/values.tsx"
import { framedReply, Refusal } from "../../src/Portal/framedReply.tsx"
import { Timeline } from "../../src/Portal/pages/timeline.tsx"
import { pathOf } from "../../src/Portal/route.ts"
import type { Viewer } from "../../src/Portal/Viewer.ts"

const tones = ["good", "warning", "bad", "neutral"] as const
const hash = `0x${"7c5e".repeat(16)}`
const options = [
  ["base", "USDC on base"],
  ["polygon", "USDT on polygon"]
] as const
/** Of another year than any reader's, so that the browser always writes it in full. */
const day = "2024-03-01T09:30:00.000Z"
const days = ["2024-02-24", "2024-02-25", "2024-02-26", "2024-02-27", "2024-02-28", "2024-02-29", "2024-03-01"]

const typed = blank("filled", {
  text: "order-1041",
  area: "order 1041\norder 1042",
  choice: "polygon",
  kinds: "polygon"
})
const refused: FormState = {
  id: "refused",
  typed: new URLSearchParams({ amount: "1,234", choice: "base" }),
  problems: [
    { path: "amount", message: "must be a number above zero such as 12.5" },
    { path: "choice", message: "is not taken on this chain" },
    { path: "kinds", message: "must have one at least" },
    { path: "", message: "The price has changed since." }
  ]
}

type Row = { readonly id: string; readonly status: string; readonly chain: ChainName }
const statuses = [...Object.keys(statusTones), "expired", "found_late"]
const rows = chainNames.map((chain, n): Row => ({ id: `order-${1041 + n}`, status: statuses[n] ?? "", chain }))
const columns: ReadonlyArray<Column<Row>> = [
  { name: "Reference", cell: ({ id }) => id },
  { name: "Status", cell: ({ status }) => <Status of={status} /> },
  { name: "Amount", numeric: true, cell: () => <Money amount={1_234_500_000n} currency="USDC" decimals={6} /> },
  { name: "Chain", cell: ({ chain }) => <Chain of={chain} /> },
  { name: "Created", cell: () => <Time at={day} /> }
]
const leading: ReadonlyArray<Column<Row>> = [
  { name: "Chosen", leads: true, cell: ({ id }) => <input type="checkbox" aria-label={`Choose ${id}`} /> },
  { name: "Reference", cell: ({ id }) => id },
  { name: "URL", wide: true, cell: ({ id }) => <code>{`https://shop.example/hooks/payments?order=${id}`}</code> },
  { name: "Created", cell: () => <Time at={day} /> }
]
const common = { keyOf: ({ id }: Row) => id, empty: "There is no payment yet." }

const counts = days.map((_, n) => ({
  confirmed: 4 + n,
  open: n % 3,
  expired: 1,
  cancelled: n % 2,
  failed: n === 4 ? 2 : 0
}))
const keys = ["confirmed", "open", "expired", "cancelled", "failed"] as const
const income = [120, 340, 290, 410, 380, 0, 520]
const chart = { days, summary: "A chart of fixed numbers." }
const sums: ReadonlyArray<Column<string>> = [
  { name: "Day", cell: (at) => at },
  { name: "Sum", numeric: true, cell: (at) => fiatText(String(income[days.indexOf(at)])) }
]
const numbers = <Table caption="By day" columns={sums} rows={days} keyOf={(at) => at} empty="" />

const Part = ({ children, name }: { readonly name: string; readonly children: ComponentChildren }) => (
  <section aria-label={name}>
    <h2>{name}</h2>
    {children}
  </section>
)

const named = (name: string, mark: ComponentChildren) => (
  <span key={name}>
    {mark} {name}
  </span>
)

const Fields = ({ of }: { readonly of: FormState }) => (
  <>
    <TextField of={of} name="text" label="Reference" />
    <TextField of={of} name="amount" label="Amount" inputMode="decimal" hint="With a point: 12.50" />
    <TextField of={of} name="secret" label="Password" type="password" placeholder="At least 12 characters" />
    <TextField of={of} name="until" label="Until" type="date" />
    <TextArea of={of} name="area" label="Note" />
    <Select of={of} name="choice" label="Currency and chain" options={options} />
    <Checks of={of} name="kinds" legend="Events" options={options} />
    <Radios of={of} name="choice" legend="Priced in" options={options} />
  </>
)

const Forms = ({ action, csrf }: { readonly action: string; readonly csrf: string }) => (
  <Part name="Forms">
    <div class="cards">
      {[typed, refused].map((of) => (
        <section key={of.id} class="card" aria-label={of.id}>
          <PostForm {...{ of, action, csrf, submit: "Create it", labels: { amount: "Amount", kinds: "Events" } }}>
            <Fields of={of} />
          </PostForm>
        </section>
      ))}
    </div>
    <div class="acts">
      <button type="button">Plain</button>
      {["", " primary"].map((kind) => (
        <a key={kind} class={`button${kind}`} href="#main">
          To the{kind} page
        </a>
      ))}
      <Act action={action} csrf={csrf}>
        A form of one button
      </Act>
    </div>
    <Confirm id="confirm" action={action} csrf={csrf} submit="Delete it for good" back="#main" />
  </Part>
)

const Lists = () => (
  <Part name="Lists">
    <Chips label="Status" options={[...options, ["all", "all"]]} chosen="polygon" hrefOf={() => "#main"} />
    <FilterProblems of={{ ...refused, problems: [{ path: "chain", message: "is not one of ours" }] }} />
    {[false, true].map((used) => (
      <Filters key={String(used)} action="#main" used={used}>
        <Select of={blank(`filter-${used}`)} name="chain" label="Chain" options={options} />
        <TextField of={blank(`filter-${used}`)} name="after" label="Created from (UTC)" type="date" />
      </Filters>
    ))}
    <Table {...common} caption="Rows that are links" columns={columns} rows={rows} hrefOf={() => "#main"} />
    <Table {...common} caption="Rows to choose, with long texts" columns={leading} rows={rows.slice(0, 2)} />
    <Table {...common} caption="Nothing" columns={columns} rows={[]} />
    <Paging first="#main" next="#main" />
  </Part>
)

const Values = () => (
  <Part name="Values">
    <p class="acts">
      {statuses.map((status) => (
        <Status key={status} of={status} />
      ))}
    </p>
    <section class="card" aria-label="Facts">
      <Facts
        of={{
          Amount: <Money amount={54_615_517n} currency="USDC" decimals={6} />,
          Chain: <Chain of="optimism" />,
          Created: <Time at={day} />,
          Transaction: <OnChain kind="tx" value={hash} chainId={1} short />,
          "Sent by": <OnChain kind="address" value={hash.slice(0, 42)} chainId={1} />,
          "On a local chain": <OnChain kind="address" value={hash.slice(0, 42)} chainId={undefined} />,
          Id: <CopyText text="pay_0123456789" />
        }}
      />
    </section>
    <CopyField id="link" label="Link to the checkout" value="https://pay.example/pay/0123456789" />
    <NewSecret
      {...{ label: "Secret", secret: Redacted.make("whsec_MDEyMzQ1Njc4OWFiY2RlZg=="), formerUntil: Date.parse(day) }}
      {...{ href: "#main", onward: "to the endpoint" }}
    />
    <Timeline entries={tones.map((tone) => ({ at: day, key: tone, tone, text: <>An entry that is {tone}</> }))} />
  </Part>
)

const page = (viewer: Viewer) => (
  <>
    <Part name="Marks">
      <p class="acts">{discNames.map((of) => named(of, <Disc of={of} />))}</p>
      <p class="acts">{markNames.map((of) => named(of, <Mark of={of} />))}</p>
    </Part>
    <Part name="Notices">
      {tones.map((tone) => (
        <Notice key={tone} tone={tone}>
          A notice whose tone is {tone}, with <a href="#main">where it leads</a>.
        </Notice>
      ))}
    </Part>
    <Forms action={pathOf(viewer, "/style")} csrf={viewer.csrf} />
    <Lists />
    <Values />
    <Part name="Charts">
      <div class="cards">
        <StackedBars {...chart} title="Payments" keys={keys} values={counts} table={numbers} />
        <Bars {...chart} title="Income" values={income} format={String} table={numbers} />
      </div>
    </Part>
    <Part name="An error">
      <Refusal viewer={viewer} text="There is nothing here, or nothing that you may see." requestId="req_0123456789" />
    </Part>
  </>
)

/** The page as an operator sees it at the path `/style` of the account `default`. */
export const stylePage = (): string => {
  const owner = { account: defaultAccount, mode: "test" } as const
  const viewer: Viewer = {
    ...{
      person: PersonId.make("per_style", true),
      name: "Ada",
      role: "operator",
      owner,
      session: SessionId.make("ses_style", true)
    },
    ...{ csrf: "", actor: { via: "portal", who: "Ada", owner }, badges: { "/exceptions": 0, "/deliveries": 0 } }
  }
  return framedReply(viewer, { title: "Style" }, page(viewer)).text
}
