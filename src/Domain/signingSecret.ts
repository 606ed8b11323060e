import { Schema } from "effect"

/** What a webhook's secret must be. */
export const secretRule = "be whsec_ followed by 16 to 256 visible characters"

export const SecretText = Schema.String.pipe(Schema.pattern(/^whsec_[^\s\p{C}]{16,256}$/u))
