/** What was done, said on the page to which a form leads: by the word in its address. */
export const doneTexts = {
  accepted: "The money was accepted.",
  account: "The account is there.",
  allowed: "Saved: what the account may do.",
  cancelled: "The payment was cancelled. What came for it, and what still comes, is an exception.",
  created: "The payment was created. Send its payment link, or the address and the exact amount, to whoever is to pay.",
  disabled: "Disabled: their sessions are over, and their password and passkeys are removed.",
  enabled: "Enabled: they need a new link to sign in.",
  endpoint: "Saved: what the endpoint gets, and where.",
  others: "Your other sessions are over, and what came of them.",
  passkey: "Saved: your passkeys.",
  password: "Saved: your password.",
  refunded: "It was noted as sent back.",
  removed: "Removed.",
  revoked: "Revoked: every request with this key is refused.",
  session: "The session is over.",
  role: "Saved: their role.",
  sessions: "Their sessions are over, and what came of them.",
  settings: "Saved. New visits to a checkout see it.",
  simulated: "It was sent on the local chain. What comes of it shows here within a few blocks.",
  terms: "Saved: where the key works, and how often."
} as const
export type Done = keyof typeof doneTexts
