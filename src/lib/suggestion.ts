/** Edits (insert, delete, replace one character) between two words. */
const distance = (a: string, b: string): number => {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}

/** Edits that count as a typing mistake; two swapped letters are two edits. */
const tolerated = (candidate: string): number => (candidate.length < 5 ? 1 : Math.max(2, candidate.length / 3))

/** The candidate that `word` was probably meant to be, ignoring case; undefined where none is close. */
export const closest = (word: string, candidates: ReadonlyArray<string>): string | undefined => {
  let best: { readonly candidate: string; readonly edits: number } | undefined
  for (const candidate of candidates) {
    // At least as many edits as characters more or fewer.
    if (Math.abs(word.length - candidate.length) > tolerated(candidate)) continue
    const edits = distance(word.toLowerCase(), candidate.toLowerCase())
    if (edits <= tolerated(candidate) && edits < (best?.edits ?? Number.POSITIVE_INFINITY)) {
      best = { candidate, edits }
    }
  }
  return best?.candidate
}
