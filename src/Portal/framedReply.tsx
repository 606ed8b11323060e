import { Effect } from "effect"
import type { ComponentChildren } from "preact"
import type { HttpReply } from "../Http/HttpReply.ts"
import { type ErrorText, pageReply } from "../Pages/reply.tsx"
import type { StoreUnavailable } from "../Sql.ts"
import { Frame, type FrameProps, otherModeOf } from "./Frame.tsx"
import { type PortalHandler, pathOf } from "./route.ts"
import type { Viewer } from "./Viewer.ts"

/** A page of the portal as a reply; status 200 unless given. */
export const framedReply = (
  viewer: Viewer,
  frame: Omit<FrameProps, "viewer" | "children">,
  children: ComponentChildren,
  status = 200
): HttpReply =>
  pageReply(
    <Frame viewer={viewer} {...frame}>
      {children}
    </Frame>,
    { status }
  )

/** What an error page says. */
export const Refusal = ({
  requestId,
  text,
  viewer
}: Pick<ErrorText, "text"> & { readonly viewer: Viewer; readonly requestId: string }) => (
  <>
    <p>{text}</p>
    <p>
      <a class="button" href={pathOf(viewer)}>
        To the home page
      </a>
    </p>
    <p class="request-id">
      Request: <code>{requestId}</code>
    </p>
  </>
)

/** An error inside the frame, so that whoever is signed in finds on. */
export const refusedInFrame = (
  viewer: Viewer,
  { headers, status, text, title }: ErrorText,
  requestId: string
): HttpReply => {
  const page = framedReply(viewer, { title }, <Refusal text={text} viewer={viewer} requestId={requestId} />, status)
  return { ...page, headers: { ...page.headers, ...headers } }
}

/** The same page whether there is none, or it is somebody else's. */
export const missing = (viewer: Viewer, section: FrameProps["section"], what: string): HttpReply =>
  framedReply(
    viewer,
    { section, title: `No such ${what}` },
    <section class="card" aria-label="What to do">
      <p>
        This account has no such {what} in {viewer.owner.mode} mode.
      </p>
      <p class="actions">
        <a class="button" href={pathOf(viewer, section === "/me" ? "" : section)}>
          Back to the list
        </a>
        <a href={pathOf(otherModeOf(viewer), section === "/me" ? "" : section)}>
          Look in {otherModeOf(viewer).owner.mode} mode
        </a>
      </p>
    </section>,
    404
  )

/** Handles what is about one thing of the viewer's, by its id in the path. */
export const aboutOne =
  <Thing, R>(
    section: FrameProps["section"],
    what: string,
    find: (viewer: Viewer, id: string) => Effect.Effect<Thing | undefined, StoreUnavailable, R>
  ) =>
  <R2 = never>(
    handle: (viewer: Viewer, thing: Thing, form: URLSearchParams) => ReturnType<PortalHandler<R2>>
  ): PortalHandler<R | R2> =>
  (viewer, { form, params }) =>
    Effect.flatMap(
      find(viewer, params.id ?? ""),
      (thing): ReturnType<PortalHandler<R2>> =>
        thing === undefined ? Effect.succeed(missing(viewer, section, what)) : handle(viewer, thing, form)
    )
