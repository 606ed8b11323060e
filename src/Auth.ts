export { Accounts, defaultAccount, type NewAccount } from "./Auth/Accounts.ts"
export { Keys, type NewKey } from "./Auth/Keys.ts"
