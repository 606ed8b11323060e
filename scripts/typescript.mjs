// Lets Node run TypeScript: node --import ./scripts/typescript.mjs file.ts
import { register } from "node:module"

register("./typescript-hooks.mjs", import.meta.url)
