/** Of the reference page. System fonts, light and dark, one column where there is no room for two. */
export const style = `:root {
  color-scheme: light dark;
  --text: #1c2024;
  --soft: #5b6470;
  --line: #d9dde3;
  --ground: #ffffff;
  --raised: #f5f6f8;
  --link: #0b57d0;
  --get: #0a6847;
  --post: #0b57d0;
  --delete: #b3261e;
  --event: #6b3fa0;
}
@media (prefers-color-scheme: dark) {
  :root {
    --text: #e6e9ed;
    --soft: #a3acb8;
    --line: #343b44;
    --ground: #15181c;
    --raised: #1e2329;
    --link: #8ab4f8;
    --get: #6fd3a6;
    --post: #8ab4f8;
    --delete: #f2948d;
    --event: #c3a6ef;
  }
}
* { box-sizing: border-box }
html { scroll-padding-top: 1rem }
body {
  margin: 0;
  color: var(--text);
  background: var(--ground);
  font: 1rem/1.6 system-ui, sans-serif;
  overflow-wrap: break-word;
}
a { color: var(--link) }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px }
code, pre { font: 0.875em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace }
:not(pre) > code { padding: 0.1em 0.3em; background: var(--raised); border-radius: 4px }
pre {
  margin: 0.5rem 0 1rem;
  padding: 0.75rem 1rem;
  overflow-x: auto;
  background: var(--raised);
  border: 1px solid var(--line);
  border-radius: 6px;
}
pre code { font-size: inherit }
h1, h2, h3, h4 { line-height: 1.25 }
h1 { margin: 0 }
h2 { margin: 3rem 0 0.75rem; padding-top: 1rem; border-top: 1px solid var(--line) }
h3 { margin: 0 0 0.5rem }
h4 { margin: 1.5rem 0 0.5rem }
h2 > a, h3 > a { color: inherit; text-decoration: none }
h2 > a:hover, h3 > a:hover { text-decoration: underline }
.skip { position: absolute; left: -100vw }
.skip:focus { left: 0; z-index: 1; padding: 0.75rem; background: var(--ground) }
main { max-width: 52rem; padding: 1.5rem 1.25rem 6rem }
nav { max-height: 40vh; overflow-y: auto; padding: 0 1.25rem 0.75rem; border-bottom: 1px solid var(--line); background: var(--raised) }
nav h2 { margin: 1rem 0 0.25rem; padding: 0; border: 0; font-size: 0.8125rem; color: var(--soft); text-transform: uppercase; letter-spacing: 0.04em }
nav ul { margin: 0; padding: 0; list-style: none }
nav li a { display: block; padding: 0.25rem 0; color: inherit; text-decoration: none }
nav li a:hover { text-decoration: underline }
.version { color: var(--soft); font-size: 1rem; font-weight: 400 }
.lead { font-size: 1.25rem; color: var(--soft); margin: 0.25rem 0 0.5rem }
.operation { margin: 2rem 0; padding: 1.25rem; border: 1px solid var(--line); border-radius: 8px }
.route { margin: 0 0 0.75rem }
.method { font: 600 0.8125rem ui-monospace, Menlo, Consolas, monospace; color: var(--soft) }
.get { color: var(--get) }
.post { color: var(--post) }
.delete { color: var(--delete) }
.event { color: var(--event) }
.fields { margin: 0.5rem 0 }
.fields dt { margin-top: 0.75rem }
.fields dd { margin: 0.125rem 0 0 1rem }
.fields p { margin: 0.125rem 0 }
.fields .fields { padding-left: 0.75rem; border-left: 2px solid var(--line) }
.type, .headers, figcaption { color: var(--soft); font-size: 0.875rem }
.required { color: var(--delete); font-size: 0.875rem }
.answer { border-top: 1px solid var(--line) }
.answer summary { padding: 0.5rem 0; cursor: pointer }
.status { display: inline-block; min-width: 3rem; font-weight: 600; color: var(--delete) }
.s2 { color: var(--get) }
.s3 { color: var(--soft) }
figure { margin: 0.5rem 0 }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-size: 0.9375rem }
th, td { padding: 0.5rem 0.75rem 0.5rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line) }
tbody th { font-weight: 400; white-space: nowrap }
:target { scroll-margin-top: 1rem }
section.operation:target { border-color: var(--link) }
@media (max-width: 40rem) {
  thead { display: none }
  tr, td:last-child { display: block }
  tr { padding: 0.5rem 0; border-bottom: 1px solid var(--line) }
  td, tbody th { display: inline-block; padding: 0 0.5rem 0 0; border: 0 }
}
@media (min-width: 64rem) {
  body { display: grid; grid-template-columns: 17rem minmax(0, 1fr) }
  nav { position: sticky; top: 0; height: 100vh; max-height: none; border: 0; border-right: 1px solid var(--line) }
  main { padding: 2rem 3rem 8rem }
}
@media print {
  nav, .skip { display: none }
}
`
