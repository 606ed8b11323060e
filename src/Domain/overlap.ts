/** The longest overlap in which two secrets sign, or two keys work, whoever replaces one. */
export const longestOverlap = "30 days"
