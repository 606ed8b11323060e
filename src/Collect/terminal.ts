/** Questions at the terminal itself, whatever the standard streams are: what is secret is in none of them. */
import { closeSync, openSync, writeSync } from "node:fs"
import { StringDecoder } from "node:string_decoder"
import { ReadStream } from "node:tty"
import { Effect } from "effect"
import { shown } from "../lib/text.ts"
import { type CollectRefused, collectRefusal } from "./CollectRefused.ts"

const enter = new Set(["\r", "\n"])
const erase = new Set(["\u007f", "\b"])
const eraseLine = "\u0015"
const interrupt = new Set(["\u0003", "\u0004"])

const noTerminal = collectRefusal(
  "There is no terminal to ask at: run this in one, or answer by its options, which --help lists."
)

/** Clears the screen and what was scrolled out of it. */
export const clearScreen = "\u001b[2J\u001b[3J\u001b[H"

/** Adds what was typed to a line. Whether the line is complete, or given up. */
const typed = (line: Array<string>, letters: string): "more" | "done" | "stop" => {
  for (const letter of letters) {
    if (enter.has(letter)) return "done"
    if (interrupt.has(letter)) return "stop"
    if (letter === eraseLine) line.length = 0
    else if (erase.has(letter)) line.pop()
    else line.push(letter)
  }
  return "more"
}

const openTerminal = Effect.try({ try: () => openSync("/dev/tty", "r+"), catch: () => noTerminal })

/** Writes to the terminal alone. */
export const showAtTerminal = (text: string, before = ""): Effect.Effect<void, CollectRefused> =>
  Effect.acquireUseRelease(
    openTerminal,
    (fd) => Effect.sync(() => writeSync(fd, before + shown(text))),
    (fd) => Effect.sync(() => closeSync(fd))
  )

/** Reads a line of the terminal; `isHidden`: without showing what is typed. Ctrl-C fails. */
export const askAtTerminal = (question: string, isHidden: boolean): Effect.Effect<string, CollectRefused> =>
  Effect.acquireUseRelease(
    Effect.flatMap(openTerminal, (fd) =>
      Effect.sync(() => {
        const input = new ReadStream(fd)
        // Its own handling of keys shows them.
        if (isHidden) input.setRawMode(true)
        writeSync(fd, shown(question))
        return { fd, input }
      })
    ),
    ({ input }) =>
      Effect.async<string, CollectRefused>((resume) => {
        const decoder = new StringDecoder("utf8")
        const line: Array<string> = []
        input.on("data", (bytes) => {
          const state = typed(line, decoder.write(bytes))
          if (state !== "more") input.removeAllListeners("data")
          if (state === "done") resume(Effect.succeed(line.join("")))
          if (state === "stop") resume(Effect.fail(collectRefusal("Stopped: nothing was done.")))
        })
        input.on("error", (cause) =>
          resume(Effect.fail(collectRefusal(`The terminal cannot be read: ${cause.message}`)))
        )
        input.on("end", () => resume(Effect.fail(collectRefusal("The terminal was closed: nothing was done."))))
      }),
    ({ fd, input }) =>
      Effect.sync(() => {
        if (isHidden) {
          input.setRawMode(false)
          writeSync(fd, "\n")
        }
        input.destroy()
      })
  )
