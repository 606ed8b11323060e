/** @type {import("dependency-cruiser").IConfiguration} */
module.exports = {
  forbidden: [
    {
      name: "domain-imports-nothing-above-it",
      comment: "src/Domain is plain data that everything shares: it imports itself and packages only.",
      severity: "error",
      from: { path: "^src/Domain/" },
      to: { path: "^src/", pathNot: "^src/Domain/" }
    },
    {
      name: "api-is-definitions",
      comment: "An Api.ts defines endpoints: it imports Domain, other Api.ts files and Auth's definitions only.",
      severity: "error",
      from: { path: "/Api[.]ts$" },
      to: { path: "^src/", pathNot: ["^src/Domain/", "/Api[.]ts$", "^src/Auth/"] }
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
      name: "composition-at-the-top",
      comment:
        "Layers are put together in App.ts, main.ts, cli.ts, the commands and what does their work without a daemon: nothing else imports these files.",
      severity: "error",
      from: { path: "^src/", pathNot: "^src/((App|main|cli|Control/alone)[.]ts$|commands/)" },
      to: { path: "^src/(App|main|cli)[.]ts$" }
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
