import { correction, generate } from "lean-qr"
import { toSvgPath } from "lean-qr/extras/svg"

/** The quiet zone that the standard asks for, in modules (ISO/IEC 18004, 5.3.8). */
const quietZone = 4

export interface QrProps {
  readonly text: string
  /** For those who do not see it. */
  readonly label: string
}

/** A QR code, black on white in both colour schemes: many cameras do not read the reverse. */
export const Qr = ({ label, text }: QrProps) => {
  const code = generate(text, { minCorrectionLevel: correction.M })
  const side = code.size + 2 * quietZone
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox={`${-quietZone} ${-quietZone} ${side} ${side}`}
      shape-rendering="crispEdges"
    >
      <rect x={-quietZone} y={-quietZone} width={side} height={side} fill="#fff" />
      <path d={toSvgPath(code)} fill="#000" />
    </svg>
  )
}
