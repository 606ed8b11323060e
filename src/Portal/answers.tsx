/** The usual answers of the portal's handlers. */
import type { ComponentChildren } from "preact"
import type { HttpReply } from "../Http/HttpReply.ts"
import { pageReply } from "../Pages/reply.tsx"
import { Frame, type FrameProps } from "./Frame.tsx"
import { pathOf } from "./route.ts"
import type { Viewer } from "./Viewer.ts"

/** A page of a section. */
export const shown = (
  viewer: Viewer,
  section: FrameProps["section"],
  title: string,
  children: ComponentChildren,
  status = 200
): HttpReply =>
  pageReply(
    <Frame viewer={viewer} section={section} title={title}>
      {children}
    </Frame>,
    { status }
  )

/** The page of something that this account and mode do not have. `what` is for people, e.g. `key`. */
export const missing = (viewer: Viewer, section: FrameProps["section"], what: string): HttpReply =>
  shown(
    viewer,
    section,
    "Not found",
    <p>
      There is no such {what} in this account and mode: <a href={pathOf(viewer, section)}>see what there is</a>.
    </p>,
    404
  )

/** A path with the parameters that have a value. */
export const withQuery = (path: string, query: Readonly<Record<string, string | undefined>>): string => {
  const given = Object.entries(query).filter((entry): entry is [string, string] => (entry[1] ?? "") !== "")
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`
}
