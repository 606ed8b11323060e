import { request as httpRequest } from "node:http"
import { connect as dial, type Socket } from "node:net"
import { relative, resolve } from "node:path"
import { Data, Effect, Either, type Scope } from "effect"

/** The Unix socket beside the database cannot be used. */
export class ControlUnusable extends Data.TaggedError("ControlUnusable")<{
  readonly message: string
  /** The socket exists, or may exist, and its permissions exclude this user. */
  readonly isDenied?: boolean
}> {}

/** No daemon listens where a command asks. Nothing was done. */
export class DaemonAbsent extends Data.TaggedError("DaemonAbsent")<{ readonly message: string }> {}

/** The daemon received the request and did not answer. The request may have been carried out. */
export class DaemonSilent extends Data.TaggedError("DaemonSilent")<{
  /** What it did instead. */
  readonly what: string
}> {
  override get message() {
    return `The daemon ${this.what}: look at its log, and whether it was done`
  }
}

/** The header with the claimed user name, percent-encoded. */
export const userHeader = "x-tilld-user"

/** The path of an operation: its name with slashes, `/webhooks/secret/rotate`. */
export const operationPath = ({ name }: { readonly name: string }): string => `/${name.replaceAll(/ (?:--)?/g, "/")}`

// sun_path of sockaddr_un, less its closing zero: 108 bytes on Linux, 104 on the BSDs and macOS. Node cuts a longer path
// short or answers EINVAL.
const longestPath = process.platform === "linux" ? 107 : 103

/** A socket's path: absolute, or relative where that is too long for the system. Left when both are. */
export const checkLength = (socket: string, remedy: string): Either.Either<string, ControlUnusable> => {
  const absolute = resolve(socket)
  const path = [absolute, relative("", absolute)].find((each) => Buffer.byteLength(each) <= longestPath)
  if (path !== undefined) return Either.right(path)
  return Either.left(
    new ControlUnusable({
      message: `The path of the control socket, ${absolute}, has ${Buffer.byteLength(absolute)} bytes where the system takes ${longestPath}: ${remedy}`
    })
  )
}

/** The path of the daemon's socket, in the folder of its database. */
export const socketPath = (database: string): Either.Either<string, ControlUnusable> =>
  checkLength(`${database}.sock`, "give database.path a shorter one, or start tilld in a folder near it")

const codeOf = (error: Error) => ("code" in error ? String(error.code) : error.message)

/** Connects to the daemon that listens at `path`; undefined when none does. */
export const connect = (path: string): Effect.Effect<Socket | undefined, ControlUnusable, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.async<Socket | undefined, ControlUnusable>((resume) => {
      const socket = dial(path)
      socket.once("connect", () => resume(Effect.succeed(socket)))
      socket.once("error", (error) => {
        const code = codeOf(error)
        // A killed daemon leaves a socket file without a listener.
        if (code === "ENOENT" || code === "ECONNREFUSED") return resume(Effect.succeed(undefined))
        const isDenied = code === "EACCES"
        const remedy = isDenied ? `run this as a user of its group, which ls -l ${path} shows` : "look at its log"
        const message = `The daemon's control socket ${path} answers ${code}: ${remedy}`
        resume(Effect.fail(new ControlUnusable({ message, isDenied })))
      })
    }),
    (socket) => Effect.sync(() => socket?.destroy())
  )

/**
 * Sends a request with a JSON body, and gives the status and the text of the answer; undefined where there is none of at most
 * `limit` bytes.
 */
export const post = (
  socket: Socket,
  path: string,
  headers: Readonly<Record<string, string>>,
  body: string,
  limit: number
) =>
  Effect.async<{ readonly status: number; readonly text: string } | undefined>((resume) => {
    const finish = (answer?: { readonly status: number; readonly text: string }) => resume(Effect.succeed(answer))
    const all = {
      ...headers,
      host: "tilld",
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body)
    }
    const request = httpRequest({ createConnection: () => socket, method: "POST", path, headers: all }, (response) => {
      const pieces: Array<Buffer> = []
      let size = 0
      response.on("data", (piece: Buffer) => {
        size += piece.length
        if (size > limit) return finish()
        pieces.push(piece)
      })
      response.once("end", () =>
        finish({ status: response.statusCode ?? 0, text: Buffer.concat(pieces).toString("utf8") })
      )
      response.once("aborted", () => finish())
    })
    // What is not HTTP is of another version, or not of a daemon: its text is no answer.
    request.once("error", (error) => (codeOf(error).startsWith("HPE_") ? finish({ status: 0, text: "" }) : finish()))
    request.end(body)
  })
