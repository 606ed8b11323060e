import { readdirSync } from "node:fs"
import { join } from "node:path"

const beside = ["CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]

/** The pages of the documentation, as paths from the root. Apart from what renders them, which takes longer to load than a build that has nothing to do. */
export const guideFiles = (root) => [
  ...beside,
  ...readdirSync(join(root, "docs"))
    .filter((file) => file.endsWith(".md"))
    .sort()
    .map((file) => `docs/${file}`)
]
