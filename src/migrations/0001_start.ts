import { accounts } from "./0001_start/accounts.ts"
import { alerts } from "./0001_start/alerts.ts"
import { audit } from "./0001_start/audit.ts"
import { ledger } from "./0001_start/ledger.ts"
import { payments } from "./0001_start/payments.ts"
import { people } from "./0001_start/people.ts"
import { requests } from "./0001_start/requests.ts"
import { usage } from "./0001_start/usage.ts"
import { webhooks } from "./0001_start/webhooks.ts"

// Amounts are TEXT of decimal digits (a SQLite integer ends at 2^63). Times are INTEGER: Unix milliseconds, block times
// Unix seconds. Addresses in `receipts` are lower case, in `payments` EIP-55.
/** The definitions, in SQLite's words: PostgreSQL's are made of them. */
export default [...accounts, ...payments, ...ledger, ...webhooks, ...audit, ...people, ...requests, ...usage, ...alerts]
