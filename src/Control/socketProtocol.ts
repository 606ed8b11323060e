import { connect as dial, type Socket } from "node:net"
import { relative, resolve } from "node:path"
import { Data, Effect, Either, Schema, type Scope } from "effect"

/** The Unix socket beside the database cannot be used. */
export class ControlUnusable extends Data.TaggedError("ControlUnusable")<{
  readonly message: string
  /** The socket exists, or may exist, and its permissions exclude this user. */
  readonly isDenied?: boolean
}> {}

/** The daemon received the request and did not answer. The request may have been carried out. */
export class DaemonSilent extends Data.TaggedError("DaemonSilent")<{
  /** What it did instead. */
  readonly what: string
}> {
  override get message() {
    return `The daemon ${this.what}: look at its log, and whether it was done`
  }
}

/** A request, as one line of JSON. `user` is the claimed user name. */
export const Request = Schema.parseJson(
  Schema.Struct({
    user: Schema.String.pipe(Schema.maxLength(200)),
    request: Schema.Struct({ _tag: Schema.String }, { key: Schema.String, value: Schema.Unknown })
  })
)

/** The result of a request, as one line of JSON. */
export const ControlReply = Schema.parseJson(
  // The order matters: a field of unknown type may also be missing.
  Schema.Union(
    Schema.Struct({ refused: Schema.String }),
    Schema.Struct({ forbidden: Schema.String }),
    Schema.Struct({ exit: Schema.Unknown })
  )
)

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

const newline = 0x0a

/** Reads the first line, of at most `limit` bytes. Undefined: the peer closed the connection, or sent a longer line. */
export const readLine = (socket: Socket, limit: number): Effect.Effect<string | undefined> =>
  Effect.async((resume) => {
    const chunks: Array<Buffer> = []
    let size = 0
    const finish = (line: string | undefined) => resume(Effect.succeed(line))
    const onData = (chunk: Buffer) => {
      const end = chunk.indexOf(newline)
      chunks.push(end === -1 ? chunk : chunk.subarray(0, end))
      size += chunks.at(-1)?.length ?? 0
      if (size > limit) finish(undefined)
      else if (end !== -1) finish(Buffer.concat(chunks).toString("utf8"))
    }
    const onEnd = () => finish(undefined)
    socket.on("data", onData).once("close", onEnd)
    return Effect.sync(() => socket.off("data", onData).off("close", onEnd))
  })

/** Sends a line and ends this side of the connection. Completes when it is written or the peer has gone. */
export const endWith = (socket: Socket, line: string): Effect.Effect<void> =>
  Effect.async((resume) => {
    const finish = () => resume(Effect.void)
    socket.once("close", finish).end(`${line}\n`, finish)
  })

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
