/** How the shop of a payment looks. The page has no look of its own beside it: with none, it shows the payment alone. */
export interface ShopLook {
  readonly name?: string
  /** Path of a picture of this origin. */
  readonly logo?: string
  /** Path of a stylesheet of this origin that sets `--accent` and `--on-accent`. */
  readonly style?: string
  /** Its site, or its help: where a payment that did not succeed leads to. */
  readonly website?: string
  /** Origins that may show the page in a frame. */
  readonly frameAncestors?: ReadonlyArray<string>
}
