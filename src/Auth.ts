export { Accounts, defaultAccount } from "./Auth/Accounts.ts"
export { Keys, type NewKey } from "./Auth/Keys.ts"
export { RateLimits } from "./Auth/RateLimits.ts"
