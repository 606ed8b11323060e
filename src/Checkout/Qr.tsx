import { correction, generate } from "lean-qr"
import { toSvgPath } from "lean-qr/extras/svg"
import { BoundedMap } from "../Domain/BoundedMap.ts"

/** The quiet zone that the standard asks for, in modules (ISO/IEC 18004, 5.3.8). */
const quietZone = 4

export interface QrProps {
  readonly text: string
  /** Alternative text. */
  readonly label: string
}

interface Drawn {
  readonly size: number
  readonly path: string
}

/** Codes by their text: making one takes half of a page's time, and pages in other languages share it. */
const drawn = new BoundedMap<string, Drawn>(500)

const draw = (text: string): Drawn => {
  const code = generate(text, { minCorrectionLevel: correction.M })
  return { size: code.size, path: toSvgPath(code) }
}

/** A QR code, black on white in both colour schemes: many cameras do not read the reverse. */
export const Qr = ({ label, text }: QrProps) => {
  const { path, size } = drawn.get(text) ?? draw(text)
  drawn.set(text, { path, size })
  const side = size + 2 * quietZone
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox={`${-quietZone} ${-quietZone} ${side} ${side}`}
      shape-rendering="crispEdges"
    >
      <rect x={-quietZone} y={-quietZone} width={side} height={side} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  )
}
