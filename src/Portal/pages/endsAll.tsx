import type { Effect } from "effect"
import { endsAllOf, type madeBy } from "../../Auth/people.ts"
import { pathOf } from "../route.ts"
import type { Viewer } from "../Viewer.ts"

interface EndsAllProps {
  readonly of: Effect.Effect.Success<ReturnType<typeof madeBy>>
  readonly viewer: Viewer
  readonly whose: "Their" | "Your other"
}

/** What "End all" ends, by name: see `endAll`. */
export const EndsAll = ({ of: { keys, people }, viewer, whose }: EndsAllProps) => (
  <>
    <p>If somebody else may have used the session, end all that they may have made of it:</p>
    <ul>
      <li>{whose} sessions, every sign-in link, the password and all passkeys</li>
      <li>
        {people.length === 0
          ? `Nobody was let in within the last ${endsAllOf} days`
          : `The same of whom was let in within the last ${endsAllOf} days: ${people.map(({ name }) => name).join(", ")}`}
      </li>
      <li>
        {keys.length === 0
          ? "No API key was made in that time"
          : "API keys made in that time, whose requests are then refused: "}
        {keys.map(({ id, account, mode, name }, place) => (
          <>
            {place === 0 ? "" : ", "}
            <a key={id} href={pathOf({ owner: { account, mode } }, `/keys/${id}`)}>
              {name}
            </a>
          </>
        ))}
      </li>
    </ul>
    <p class="hint">
      What is older, and webhook endpoints, are yours to look through: <a href={pathOf(viewer, "/keys")}>API keys</a>,{" "}
      <a href={pathOf(viewer, "/webhooks")}>Webhooks</a>. The <a href={pathOf(viewer, "/audit")}>audit log</a> has who
      did what.
    </p>
  </>
)
