import type { ComponentChildren } from "preact"
import type { HttpReply } from "../Http/HttpReply.ts"
import { pageReply } from "../Pages/reply.tsx"
import { Frame, type FrameProps } from "./Frame.tsx"
import type { Viewer } from "./Viewer.ts"

/** A page of the portal as a reply; status 200 unless given. */
export const framedReply = (
  viewer: Viewer,
  { section, title }: Pick<FrameProps, "section" | "title">,
  children: ComponentChildren,
  status = 200
): HttpReply =>
  pageReply(
    <Frame viewer={viewer} section={section} title={title}>
      {children}
    </Frame>,
    { status }
  )

/** The same page whether there is none, or it is somebody else's. */
export const missing = (viewer: Viewer, section: FrameProps["section"], what: string): HttpReply =>
  framedReply(
    viewer,
    { section, title: "Not found" },
    <p>
      There is no such {what} in this account and mode. A link may be of the other mode: see the switch at the top.
    </p>,
    404
  )
