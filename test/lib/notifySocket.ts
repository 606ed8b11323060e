import { join } from "node:path"
import { Effect } from "effect"
import { temporaryFolder } from "./store.ts"
import { PATH, start } from "./tilld.ts"

// Node has no datagram sockets of the Unix domain. Perl is on every Debian. `recv` drops the descriptors that come along:
// that is how systemd-notify learns that its message has been read.
const receiver = `
  use Socket;
  $| = 1;
  socket(my $socket, AF_UNIX, SOCK_DGRAM, 0) or die $!;
  bind($socket, sockaddr_un($ARGV[0])) or die $!;
  print "bound\\n";
  while (defined recv($socket, my $message, 65536, 0)) { print "$message\\n" if $message =~ /=/ && $message !~ /^BARRIER/ }
`

/** A socket as systemd gives it to a service, until the scope ends: `line` waits for a message. */
export const notifySocket = Effect.gen(function* () {
  const path = join(yield* temporaryFolder, "notify")
  const running = yield* start("perl", ["-e", receiver, path])
  yield* running.line("bound")
  return { env: { NOTIFY_SOCKET: path, PATH: PATH ?? "" }, line: running.line, lines: running.lines }
})
