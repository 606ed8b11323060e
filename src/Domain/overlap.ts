/** The longest overlap in which two secrets sign, or two keys work, by API, portal and command alike. */
export const longestOverlap = "30 days"

/** The same where nobody says, in hours. */
export const defaultOverlapHours = 24
