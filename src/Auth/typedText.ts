/** Maximum characters of a password, and of a sign-in name before it is normalised. */
export const mostTyped = 1_000

/**
 * What a person typed, in the form that keyboards agree on. A longer text is neither a name nor a password, and stays
 * as it is: ordering a run of combining marks takes time quadratic in its length.
 */
export const normalText = (text: string): string => (text.length > mostTyped ? text : text.normalize("NFKC"))
