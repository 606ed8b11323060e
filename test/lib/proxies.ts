import { spawnSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect } from "@effect/vitest"
import { PATH, root } from "./tilld.ts"

export const proxyName = "pay.shop.example"

/** A file as the command of docs/install.md writes it, for the name of the tests. */
const installed = (file: string) => {
  const page = readFileSync(join(root, "docs/install.md"), "utf8")
  const command = page.split("\n").find((line) => line.startsWith("sed ") && line.includes(`config/proxy/${file} >`))
  const [sed = ""] = (command ?? expect.fail(`docs/install.md does not write ${file}`)).split(" > ")
  const script = sed.replace("/pay.example.com/", `/${proxyName}/`).replace("/opt/tilld/current", root)
  const { status, stdout } = spawnSync("sh", ["-c", script], { encoding: "utf8", env: { PATH } })
  expect(status).toBe(0)
  expect(stdout).not.toContain("pay.example.com")
  return stdout
}

export interface Place {
  readonly folder: string
  readonly tilld: string
  readonly port: number
  readonly plain: number
  /** Another node, which is asked first. */
  readonly standby?: string
  /** False where clients speak plain HTTP to it. */
  readonly tls?: boolean
}

/** Replaces a text that the file must have. */
const changed = (file: string, changes: ReadonlyArray<readonly [from: string | RegExp, to: string]>) =>
  changes.reduce((text, [from, to]) => {
    const next = text.replace(from, to)
    expect(next, `${from}`).not.toBe(text)
    return next
  }, file)

/** How each is started from its file: with ports of this test, its certificate, and nothing of the machine's own. */
export const proxies = {
  nginx: {
    file: "nginx.conf",
    started: /getrlimit/,
    args: ({ folder, plain, port, standby, tilld, tls = true }: Place) => {
      const nodes = [
        ["  server 127.0.0.1:8080;\n", ""],
        ["#server 10.0.0.1:8080 max_fails=0;", `server ${standby} max_fails=0;`],
        ["#server 10.0.0.2:8080 max_fails=0;", `server ${tilld} max_fails=0;`]
      ] as const
      const site = changed(installed("nginx.conf"), [
        ...(standby === undefined ? [["server 127.0.0.1:8080;", `server ${tilld};`] as const] : nodes),
        ["listen 80;", `listen 127.0.0.1:${plain};`],
        ["listen 443 ssl http2;", `listen 127.0.0.1:${port}${tls ? " ssl http2" : ""};`],
        // Not every machine has IPv6.
        [/^ *listen \[::\].*\n/gm, ""],
        [`/etc/letsencrypt/live/${proxyName}/fullchain.pem`, join(folder, "certificate.pem")],
        [`/etc/letsencrypt/live/${proxyName}/privkey.pem`, join(folder, "key.pem")]
      ])
      writeFileSync(join(folder, "tilld.conf"), tls ? site : site.replace(/^ *ssl_.*\n/gm, ""))
      // What Debian's nginx.conf has around it; one process, which dies with the test.
      const around = `daemon off; master_process off; pid nginx.pid; error_log stderr notice;
        events { worker_connections 768; }
        http { gzip on; access_log access.log; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
          uwsgi_temp_path uwsgi; scgi_temp_path scgi; include tilld.conf; }`
      writeFileSync(join(folder, "nginx.conf"), around)
      return ["-p", folder, "-e", "stderr", "-c", "nginx.conf"]
    }
  },
  caddy: {
    file: "Caddyfile",
    started: /serving initial configuration/,
    args: ({ folder, plain, port, standby, tilld, tls = true }: Place) => {
      const [http, https] = tls ? [plain, port] : [port, plain]
      const ports = `{\n\tadmin off\n\thttp_port ${http}\n\thttps_port ${https}\n\tdefault_bind 127.0.0.1\n`
      const files = `\ttls ${join(folder, "certificate.pem")} ${join(folder, "key.pem")}\n`
      const site = changed(installed("Caddyfile"), [
        [/^\{\n/m, ports],
        [`${proxyName} {\n`, tls ? `${proxyName} {\n${files}` : "http:// {\n"],
        ["reverse_proxy 127.0.0.1:8080", `reverse_proxy ${standby ?? ""} ${tilld}`],
        ...(standby === undefined ? [] : [[/#(?=lb_|health_)/g, ""] as const])
      ])
      writeFileSync(join(folder, "Caddyfile"), site)
      return ["run", "--config", join(folder, "Caddyfile"), "--adapter", "caddyfile"]
    }
  }
} as const
