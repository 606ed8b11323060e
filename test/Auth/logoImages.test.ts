import { Either } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { imageTypeOf } from "../../src/Auth/shops.ts"

const be = (value: number, bytes: number) =>
  Array.from({ length: bytes }, (_, i) => (value >>> (8 * (bytes - 1 - i))) & 255)
const le = (value: number, bytes: number) => be(value, bytes).reverse()
const ascii = (text: string) => [...Buffer.from(text, "latin1")]
const riff = (chunk: string, ...data: ReadonlyArray<number>) => [...ascii(`RIFF\0\0\0\0WEBP${chunk}`), ...data]

/** The header of a file of each kind with this size. */
const headers = {
  PNG: (w: number, h: number) => [
    "png",
    [...ascii("\x89PNG\r\n\x1a\n"), ...be(13, 4), ...ascii("IHDR"), ...be(w, 4), ...be(h, 4)]
  ],
  JPEG: (w: number, h: number) => [
    "jpg",
    [
      0xff,
      0xd8,
      0xff,
      0xe0,
      ...be(16, 2),
      ...Array(14).fill(0),
      0xff,
      0xff,
      0xc2,
      ...be(17, 2),
      8,
      ...be(h, 2),
      ...be(w, 2)
    ]
  ],
  "WebP, VP8": (w: number, h: number) => [
    "webp",
    riff("VP8 ", ...le(9, 4), 0, 0, 0, 0x9d, 1, 0x2a, ...le(w, 2), ...le(h, 2))
  ],
  "WebP, VP8L": (w: number, h: number) => [
    "webp",
    riff("VP8L", ...le(9, 4), 0x2f, ...le((w - 1) | ((h - 1) << 14), 4))
  ],
  "WebP, VP8X": (w: number, h: number) => [
    "webp",
    riff("VP8X", ...le(10, 4), 0, 0, 0, 0, ...le(w - 1, 3), ...le(h - 1, 3))
  ]
} as const satisfies Record<string, (w: number, h: number) => readonly [string, ReadonlyArray<number>]>

const judged = (bytes: ReadonlyArray<number>, size = 31_000) => {
  const file = Buffer.alloc(size)
  file.set(bytes)
  return imageTypeOf(file)
}

describe.each(Object.entries(headers))("%s", (_, header) => {
  it.each([
    [1, 1],
    [1_000, 1_000],
    [1_001, 1],
    [1, 1_001],
    [16_000, 16_000]
  ])("%d × %d", (width, height) => {
    const [type, bytes] = header(width, height)
    const tooLarge = `The picture has ${width} × ${height} pixels: make it at most 1000 × 1000.`
    expect(judged(bytes)).toEqual(Math.max(width, height) > 1_000 ? Either.left(tooLarge) : Either.right(type))
  })

  it("without its end, or of more than 40 KiB, is no picture", () => {
    const [, bytes] = header(10, 10)
    const none = Either.left("The picture must be a PNG, JPEG or WebP of at most 40 KiB.")
    expect(imageTypeOf(Buffer.from(bytes.slice(0, 20)))).toEqual(none)
    expect(judged(bytes, 40 * 1024 + 1)).toEqual(none)
  })
})

it("any bytes are judged", () => {
  const start = fc.constantFrom(...Object.values(headers).map((header) => header(10, 10)[1].slice(0, 16)))
  void fc.assert(
    fc.property(start, fc.uint8Array({ maxLength: 60 }), (first, rest) => {
      imageTypeOf(Buffer.from([...first, ...rest]))
      imageTypeOf(Buffer.from(rest))
    })
  )
})
