import { Data } from "effect"

/** Another process listens on a port that a part of the sandbox needs. */
export class PortInUse extends Data.TaggedError("PortInUse")<{
  readonly host: string
  readonly port: number
  /** What wanted the port, as the message names it. */
  readonly wantedBy: string
}> {
  override get message() {
    return `Port ${this.port} on ${this.host} is in use, and ${this.wantedBy} needs it: end the process that listens there (find it with \`ss -ltnp 'sport = :${this.port}'\` or \`lsof -i :${this.port}\`) or choose another port.`
  }
}
