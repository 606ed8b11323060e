import type { Socket } from "node:net"

/** Bytes that are parsed between two checks whether to go on: the length of an ordinary request. */
const slice = 1024

/**
 * Hands what a connection receives to Node's parser little by little, until the connection is refused. The parser cannot be
 * stopped while it is at a read, and one read of 64 KiB may hold thousands of chunks or requests: tens of milliseconds of the
 * event loop for every connection that a flood opens again. Node's parser reads the socket itself, past its "data" events,
 * until somebody else listens for them.
 *
 * @param isWanted gets the bytes that are parsed next; false once the connection is refused
 */
export const parseInSlices = (socket: Socket, isWanted: (bytes: number) => boolean): void => {
  const parsers = socket.listeners("data")
  socket.removeAllListeners("data").on("data", (bytes: Buffer) => {
    for (let at = 0; at < bytes.length && !socket.destroyed; at += slice) {
      // Too much is unread: replies by the client, or a body here.
      if (socket.isPaused()) return void socket.unshift(bytes.subarray(at))
      const next = bytes.subarray(at, at + slice)
      if (!isWanted(next.length)) return
      for (const parse of parsers) parse.call(socket, next)
    }
  })
}
