import jsqr from "jsqr"
import type { Locator } from "playwright-core"
import { PNG } from "pngjs"

// A CommonJS module, whose only export is named "default" for its types and is the module for Node.
const decode = (jsqr as unknown as { readonly default?: typeof jsqr.default }).default ?? jsqr

/** What a camera reads of an element's picture on the screen; undefined where that is not a QR code. */
export const readQr = async (element: Locator): Promise<string | undefined> => {
  const { data, height, width } = PNG.sync.read(await element.screenshot())
  return (decode as typeof jsqr.default)(new Uint8ClampedArray(data), width, height)?.data
}
