import { type AST, RegExpParser, visitRegExpAST } from "@eslint-community/regexpp"
import { Chars, getConsumedChars, isPotentiallyEmpty, type ReadonlyFlags } from "regexp-ast-analysis"
import { analyse } from "scslre"

// Whether a regular expression may take more than linear time. `scslre` finds what a run of one character shows; here is
// what a repeated text shows: a search that begins again and again inside of what an earlier one has read in vain.

type CharSet = ReturnType<typeof getConsumedChars>["chars"]

/** From the quantifier up to the pattern: each node with its parent. */
const pathOf = (quantifier: AST.Quantifier): ReadonlyArray<readonly [node: AST.Node, parent: AST.Node]> => {
  const up = (node: AST.Node): ReadonlyArray<readonly [AST.Node, AST.Node]> =>
    node.parent === null ? [] : [[node, node.parent], ...up(node.parent)]
  return up(quantifier)
}

/** The elements that a match has before it comes to the quantifier. */
const elementsBefore = (quantifier: AST.Quantifier): ReadonlyArray<AST.Element> =>
  pathOf(quantifier).flatMap(([node, parent]) =>
    parent.type === "Alternative" ? parent.elements.slice(0, parent.elements.indexOf(node as AST.Element)) : []
  )

/** Nothing comes after the quantifier, so the match cannot fail once it is there. */
const isLast = (quantifier: AST.Quantifier): boolean =>
  pathOf(quantifier).every(
    ([node, parent]) =>
      parent.type !== "Quantifier" &&
      parent.type !== "Assertion" &&
      (parent.type !== "Alternative" || parent.elements.at(-1) === node)
  )

/** Whether another match may begin within what the quantifier reads, a set of characters, with regard to this element. */
const beginsWithin = (own: CharSet, element: AST.Element, flags: ReadonlyFlags): boolean => {
  if (element.type === "Assertion") {
    if (element.kind === "start") return flags.multiline === true && !Chars.lineTerminator(flags).isDisjointWith(own)
    if (element.kind !== "lookbehind" || !element.negate) return true
    return !element.alternatives.some((one) => own.isSubsetOf(getConsumedChars(one, flags).chars))
  }
  return isPotentiallyEmpty(element, flags) || !getConsumedChars(element, flags).chars.isDisjointWith(own)
}

/** Why the time of a regular expression may grow faster than its text; undefined if it is linear. */
export const whySlow = ({ flags, source }: Pick<RegExp, "flags" | "source">): string | undefined => {
  const [report] = analyse({ source, flags }).reports
  if (report !== undefined) return `${report.type}${report.exponential ? ", exponential" : ""}`
  const parser = new RegExpParser()
  const given = parser.parseFlags(flags)
  let slow: string | undefined
  visitRegExpAST(parser.parsePattern(source, 0, source.length, given), {
    onQuantifierEnter: (quantifier) => {
      if (quantifier.max !== Number.POSITIVE_INFINITY || given.sticky || isLast(quantifier)) return
      const own = getConsumedChars(quantifier, given).chars
      if (elementsBefore(quantifier).every((element) => beginsWithin(own, element, given))) slow = quantifier.raw
    }
  })
  return slow
}
