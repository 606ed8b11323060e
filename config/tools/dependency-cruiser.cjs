/**
 * The rooms of src, each above those it may use: a room is a folder without its subfolders, and the file of its name
 * beside it. The order is that of calls, from the commands down to plain data. The HTTP kernel is below the rooms whose
 * handlers it serves, and payments are above the events and deliveries that they give rise to.
 */
const rooms = [
  "cli",
  "commands",
  "main",
  "App",
  "Server",
  "Portal",
  "Portal/pages",
  "Portal/frame",
  "Portal/components",
  "Checkout",
  "Sandbox",
  "Listen",
  "Collect",
  "Control",
  "Doctor",
  "Greenfield",
  "Pages",
  "Documents",
  "Admin",
  "Conditions",
  "Api",
  "Housekeeping",
  "Backup",
  "Books",
  "Invoices",
  "Payments/decisions",
  "Payments",
  "Payments/addresses",
  "Events",
  "Webhooks",
  "Webhooks/queue",
  "Webhooks/transport",
  "Quotes",
  "Quotes/sources",
  "Chains",
  "Chains/watcher",
  "Chains/repair",
  "Chains/corroboration",
  "Chains/balances",
  "Chains/scan",
  "Chains/providers",
  "Chains/ledger",
  "Chains/rpc",
  "Chains/evidence",
  "Http",
  "Auth",
  "Operations",
  "Secrets",
  "Sql/postgres",
  "Sql",
  "migrations",
  "migrations/0001_start",
  "Telemetry",
  "Settings",
  "Domain",
  "lib"
]

/**
 * The portal joins its pages, and these use the files beside it: two rooms of one folder. The subcommands of a command
 * use the files that all commands share: one room of two folders.
 */
const named = {
  commands: "^src/commands([.]ts|/)",
  Portal: "^src/Portal([.]ts|/routes[.]ts)$",
  "Portal/frame": "^src/Portal/(?!routes[.]ts$)[^/]+$"
}

/** client is a house of its own, see below. */
const inRoom = (room) => named[room] ?? `^src/${room}([.]tsx?|/[^/]+)$`

/** Types count: a name that a room needs from above is defined in the wrong place. */
const order = [
  ...rooms.slice(1).map((room, i) => ({
    name: `${room}-uses-only-rooms-below-it`,
    comment: "The order of the rooms is in config/tools/dependency-cruiser.cjs.",
    severity: "error",
    from: { path: inRoom(room) },
    to: { path: rooms.slice(0, i + 1).map(inRoom) }
  })),
  {
    name: "every-file-has-a-room",
    comment: "A new folder gets its place in the order of config/tools/dependency-cruiser.cjs.",
    severity: "error",
    from: { path: "^src/", pathNot: [...rooms.map(inRoom), "^src/client/", "^src/[^/]+/islands/"] },
    to: {}
  }
]

/** @type {import("dependency-cruiser").IConfiguration} */
module.exports = {
  forbidden: [
    ...order,
    {
      name: "api-is-definitions",
      comment:
        "An Api.ts defines endpoints: it imports lib, Domain, other Api.ts files and the definitions of Auth and Operations only.",
      severity: "error",
      from: { path: "/Api[.]ts$" },
      to: { path: "^src/", pathNot: ["^src/(lib|Domain|Auth|Operations)/", "/Api[.]ts$"] }
    },
    {
      name: "api-without-handlers-and-sql",
      comment: "A client may import an Api.ts: neither a handler nor SQL may come along, by whatever way.",
      severity: "error",
      from: { path: "/Api[.]ts$" },
      to: {
        path: ["/(Http|Sql)[.]ts$", "Repo[.]ts$", "^src/Sql/", "node_modules/(@effect/sql|better-sqlite3)"],
        reachable: true
      }
    },
    {
      name: "client-needs-nothing",
      comment:
        "tilld/client runs in other people's programs: it imports no other folder, no package, and nothing of Node.",
      severity: "error",
      from: { path: "^src/client/" },
      to: { pathNot: "^src/client/" }
    },
    {
      name: "nothing-needs-the-client",
      comment: "The daemon is not a client of itself: nothing of src/client is in its bundle.",
      severity: "error",
      from: { path: "^src/", pathNot: "^src/client/" },
      to: { path: "^src/client/" }
    },
    {
      name: "islands-run-in-the-browser",
      comment:
        "An island is bundled for browsers: it imports other islands, lib, Domain and packages for browsers only, and types.",
      severity: "error",
      from: { path: "^src/[^/]+/islands/" },
      to: {
        pathNot: ["^src/[^/]+/islands/", "^src/(lib|Domain)/", "^node_modules/(mipd|@simplewebauthn/browser)/"],
        dependencyTypesNot: ["type-only"]
      }
    },
    {
      name: "nothing-needs-an-island",
      comment: "Browsers get islands as assets: the daemon imports none.",
      severity: "error",
      from: { path: "^src/", pathNot: "^src/[^/]+/islands/" },
      to: { path: "^src/[^/]+/islands/" }
    },
    {
      name: "no-circles",
      comment: "Modules that import each other load in an order that nobody chose. Types alone do no harm.",
      severity: "error",
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ["type-only"] } }
    },
    {
      name: "no-unresolvable",
      severity: "error",
      from: {},
      to: { couldNotResolve: true }
    }
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    enhancedResolveOptions: { exportsFields: ["exports"], conditionNames: ["import", "node", "default"] },
    tsConfig: { fileName: "tsconfig.json" },
    tsPreCompilationDeps: true
  }
}
