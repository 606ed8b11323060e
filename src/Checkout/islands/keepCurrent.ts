/**
 * Keeps the page up to date. A stream names the version that the page should show; another one is fetched, and its `<main>`
 * takes the place of this one. Where there is no stream, the page is fetched every few seconds.
 */
// Runs in browsers, without Effect: the platform's own functions are all it has.
// @effect-diagnostics globalFetch:off globalTimers:off
/** Lets screen readers hear a text once, in the page's live region. */
export const announce = (text: string): void => {
  const region = document.getElementById("announcement")
  if (region !== null) region.textContent = text
}

/** Milliseconds. */
const pollInterval = 5_000

type Enhance = (main: HTMLElement) => void

const versionOf = (main: Element | null): string | undefined =>
  main instanceof HTMLElement ? main.dataset["version"] : undefined

const isFinal = (main: HTMLElement): boolean => main.dataset["final"] === "true"

const fetchMain = async (
  at: string
): Promise<{ readonly main: HTMLElement | null; readonly title: string } | undefined> => {
  const response = await fetch(at, { headers: { accept: "text/html" } })
  if (!response.ok) return undefined
  const page = new DOMParser().parseFromString(await response.text(), "text/html")
  return { main: page.querySelector("main"), title: page.title }
}

/** The focused element keeps the focus where the new page has it too, and what was opened stays open. */
const replace = (former: HTMLElement, main: HTMLElement, enhance: Enhance): void => {
  const focused = former.contains(document.activeElement) ? document.activeElement : null
  const headline = former.querySelector("h1")?.textContent
  if (former.querySelector("details")?.open) main.querySelector("details")?.setAttribute("open", "")
  former.replaceWith(main)
  enhance(main)
  const heading = main.querySelector("h1")
  if (focused !== null) {
    const place = (focused.id === "" ? null : document.getElementById(focused.id)) ?? heading
    place?.focus({ preventScroll: true })
    // The heading is read because it has the focus.
    if (place === heading) return
  }
  if (heading !== null && heading.textContent !== headline) announce(heading.textContent ?? "")
}

/** Says whether the page can be kept up to date. */
const showOffline = (isOffline: boolean): void => {
  const notice = document.getElementById("offline")
  if (notice !== null) notice.hidden = !isOffline
}

export const keepCurrent = (first: HTMLElement, enhance: Enhance): void => {
  let shown = first
  let shownAt = location.href
  let isFetching = false
  let isOutdated = false

  const show = async (): Promise<void> => {
    const at = location.href
    const page = await fetchMain(at)
    if (!page?.main || (at === shownAt && versionOf(page.main) === versionOf(shown))) return
    shownAt = at
    const former = shown
    shown = document.adoptNode(page.main)
    document.title = page.title
    replace(former, shown, enhance)
  }

  const update = async (): Promise<void> => {
    isOutdated = true
    if (isFetching) return
    isFetching = true
    try {
      // A version that arrives meanwhile may be newer than the one being fetched.
      while (isOutdated) {
        isOutdated = false
        await show()
      }
      showOffline(false)
    } catch {
      // The network is down for the moment: the next version, or poll, tries again.
      showOffline(true)
    } finally {
      isFetching = false
    }
  }

  const poll = () => {
    if (isFinal(shown)) return
    setTimeout(() => void update().then(poll), pollInterval)
  }

  if (isFinal(first)) return
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest<HTMLAnchorElement>("a[data-in-place]") : null
    if (link === null || event.ctrlKey || event.metaKey || event.shiftKey) return
    event.preventDefault()
    history.replaceState(null, "", link.href)
    void update()
  })
  const stream = new EventSource(`${location.pathname}/events`)
  window.addEventListener("offline", () => showOffline(true))
  window.addEventListener("online", () => void update())
  stream.addEventListener("message", ({ data }) => {
    if (data === versionOf(shown)) return
    void update().then(() => {
      if (isFinal(shown)) stream.close()
    })
  })
  stream.addEventListener("error", () => {
    // The browser connects again by itself, unless the stream was refused.
    if (stream.readyState === EventSource.CLOSED && !isFinal(shown)) poll()
  })
}
