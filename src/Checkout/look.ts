/** The branding of a payment's shop. The page has none of its own: without it, it shows only the payment. */
export interface ShopLook {
  readonly name?: string
  /** Path of a picture of this origin. */
  readonly logo?: string
  /** Path of a stylesheet of this origin that sets `--accent` and `--on-accent`. */
  readonly style?: string
  /** Its site or help page: the link of an unsuccessful payment. */
  readonly website?: string
  /** Where payers ask about money that does not fit: as `contactLink` gives it. */
  readonly contact?: string | undefined
  /** Origins that may show the page in a frame. */
  readonly frameAncestors?: ReadonlyArray<string>
}
